package rollout

import (
	"maps"
	"slices"
	"time"
)

// soak is how long a workload has to stay well before that proves anything: the setting of
// the workload, or Limits.Soak; while nobody has proven a content that it carries, no less
// than the first soak of that. minReadySeconds is a lower bound of all. It is worked out
// anew at each look, so it is short for all as soon as one has proven the content.
func (p *Plan) soak(r *record, f *Facts) time.Duration {
	if its := f.Policy.Soak; its.Given {
		return max(its.For, f.Status.MinReady)
	}
	soak := p.limits.soak(f)
	tried := slices.Collect(maps.Keys(r.unproven()))
	if a := r.attempt; a != nil {
		tried = append(tried, a.sources...)
		for _, was := range a.holds {
			tried = append(tried, was.sources...)
		}
	}
	for _, at := range tried {
		known := p.changes[at]
		if known == nil {
			continue
		}
		c := known.root()
		if _, proven := c.progress(at, false); proven == 0 && f.carries(at.Source, c.contents[at]) {
			soak = max(soak, p.limits.firstSoak(c.concerns(at)))
		}
	}
	return soak
}

// soak is how long a rollout has to stay well, where no first soak counts and no setting
// says otherwise.
func (l *Limits) soak(f *Facts) time.Duration { return max(l.Soak, f.Status.MinReady) }

// firstSoak is how long a rollout has to stay well while nobody has proven a content that
// concerns some workloads: the more these are, the more a bad content costs.
func (l *Limits) firstSoak(concerned int) time.Duration {
	switch {
	case concerned >= 100:
		return 10 * l.FirstSoak
	case concerned >= 10:
		return 2 * l.FirstSoak
	case concerned >= 3:
		return l.FirstSoak
	}
	return 0
}

// concerns is how many workloads the change of a source concerns: those that wait or roll
// for it, those that have rolled, and those that are yet to be looked at (a new leader
// knows of no others at first). What a setting holds does not count. Of a replicated
// ConfigMap all namespaces count. One that has failed and waits again counts twice, which
// is no harm.
func (c *change) concerns(at SourceRef) int {
	concerned := c.waiting + c.attempts + c.settled + max(c.unseen, 0)
	if g := c.groups[at]; g != nil {
		concerned = max(concerned, g.waiting+g.attempts+g.settled+max(g.unseen, 0))
	}
	return concerned
}

// hasten has those looked at that roll for the change of a source, as somebody has proven its
// content now: the first soak counts for them no longer.
func (p *Plan) hasten(c *change, at SourceRef) {
	changes := map[*change]struct{}{c: {}}
	if g := c.groups[at]; g != nil {
		changes = g.changes
	}
	under := map[*record]struct{}{}
	for other := range changes {
		for r := range other.members {
			if r.attempt != nil && r.attempt.state == rolling {
				under[r] = struct{}{}
			}
		}
	}
	for _, r := range sortedRecords(maps.Keys(under)) {
		p.look(r.ref)
	}
}
