package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// firstWatched is how many of those that took a content are looked at until nobody waits for it.
const firstWatched = 10

// watchFirst puts those of the first that took a content on trial again that have fallen since they
// proved it, and reports whether any has.
func (p *Planner) watchFirst(now time.Time, out *Orders) (fell bool) {
	for _, c := range p.open {
		if c.all().waiting == 0 {
			continue
		}
		for _, its := range c.parts {
			if state, _ := its.state(); state == Proven && its.first && its.low() && p.falls(its, now, out) {
				fell = true
			}
		}
	}
	return fell
}

// falls reports whether a workload that is low has fallen by its content: then it is on trial again.
func (p *Planner) falls(its *part, now time.Time, out *Orders) bool {
	t := its.track
	if t.facts.Pods != nil {
		t.needs = Needs{}
	}
	if out.again(t.rereads, now) {
		return false
	}
	if t.facts.Pods == nil {
		t.asks(Needs{Pods: true, Nodes: t.needs.Nodes}, out)
		return false
	}
	fell, ask := its.podsFell()
	switch {
	case len(ask) > 0:
		t.asks(Needs{Pods: true, Nodes: ask}, out)
	case fell:
		its.backOnTrial(now)
	default: // nothing shows that it is by its content
		t.rereads = now.Add(failedLooks * p.limits.lookEvery())
		out.again(t.rereads, now)
	}
	return fell
}

// low reports whether a workload has fewer than nine tenths of what was available when its turn
// came, or of what is wanted by now.
func (p *part) low() bool {
	t := p.track
	if t.facts == nil || !t.gone.IsZero() || t.trial != nil || t.facts.Status.Phase == workload.Unreported {
		return false
	}
	status := &t.facts.Status
	return 10*status.Available < 9*min(p.level, status.Wanted)
}

// podsFell reports whether a pod that served before has restarted, is in trouble, or is not ready on
// a node that is. ask are the nodes for which that has to be read first. Pods that are new, or end,
// tell nothing.
func (p *part) podsFell() (fell bool, ask []string) {
	f := p.track.facts
	if f.Pods.Access != Seen {
		return false, nil
	}
	for _, pod := range Made(f.Pods.All, f.Records.Stamps) {
		if pod.Created.After(p.since) || pod.Node == "" {
			continue
		}
		if pod.Trouble != "" || pod.Restarted && !pod.Started.Before(p.since.Truncate(time.Second)) {
			return true, nil
		}
		if pod.Ready {
			continue
		}
		ready, known := f.Nodes[pod.Node]
		if !known && len(ask) < mostNodes && !slices.Contains(ask, pod.Node) {
			ask = append(ask, pod.Node)
		}
		fell = fell || ready
	}
	if fell {
		return true, nil
	}
	return false, ask
}

// backOnTrial puts a workload on trial again, and for longer each time. Nobody begins meanwhile.
func (p *part) backOnTrial(now time.Time) {
	p.fallen++
	p.enters(OnTrial, now)
	p.track.trial = &trial{began: now, level: p.level, found: true, fallen: true}
}

// endsWatch has a workload that has fallen, and does not get up, no longer be watched, and reports
// whether that is so: nothing shows that its content is to blame.
func (t *track) endsWatch() bool {
	r := t.trial
	if !r.fallen || r.health.trouble != "" || !r.health.started.IsZero() {
		return false
	}
	for _, its := range t.parts {
		if its.take != nil && its.fallen > 0 {
			its.first = false
		}
	}
	return true
}
