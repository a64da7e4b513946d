package rollout

import (
	"math"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// class is how a workload stands; who stands better goes first: see compare.
type class int

const (
	gentle  class = iota // pods are replaced while others serve
	careful              // it may serve nobody meanwhile
	lacking              // it lacks replicas, or rolls for another reason
	down                 // it has none, and nothing to lose
	untells              // it cannot tell how it is
)

// order is its place in a change.
func (t *track) order() int {
	if its := t.facts.Policy.Order; its.Given {
		return its.Place
	}
	return unordered
}

// The order of those that have none: they go after the others; and of nobody.
const (
	unordered = math.MaxInt - 1
	nobody    = math.MaxInt
)

// lacks reports whether a workload is not as it shall be.
func (t *track) lacks() bool { return t.class == lacking || t.class == down }

// classify finds out how a workload that waits stands in the order. again is when to look again.
func (p *Planner) classify(t *track, now time.Time) (again time.Duration, need Needs) {
	f := t.facts
	phase, again, need := p.phaseOf(t, now)
	fell := phase == workload.RolledOut && f.Relapsed && now.Sub(f.Calm) < CalmAfter
	if fell {
		again = CalmAfter - now.Sub(f.Calm)
	}
	switch {
	case need.Any():
	case phase == workload.Unreported:
		t.class = untells
	case phase == workload.RolledOut && !fell:
		if t.class = gentle; !f.Status.Gentle {
			t.class = careful
		}
	case f.Status.Wanted > 0 && f.empty(now) && !t.open():
		t.class = down
	default:
		t.class = lacking
	}
	return again, need
}

// phaseOf is how far a workload is that waits for its turn. One that lacks nothing, but on nodes
// that are not ready, is rolled out.
func (p *Planner) phaseOf(t *track, now time.Time) (phase workload.Phase, again time.Duration, need Needs) {
	f := t.facts
	if phase = f.Status.Phase; phase != workload.Rolling {
		return phase, 0, Needs{}
	}
	stands := now.Sub(f.Since)
	again = max(0, unhealthyAfter-stands)
	if !f.Status.PerNode || f.Status.Missing == 0 {
		return phase, again, Needs{}
	}
	if soak := min(p.limits.soak(f), unhealthyAfter); stands < soak {
		return phase, soak - stands, Needs{}
	}
	if !t.finding.counts(f, now) {
		if f.Pods == nil || f.Pods.Access == Unread {
			return phase, 0, Needs{Pods: true}
		}
		_, alone, ask := f.nodesOf()
		if len(ask) > 0 {
			return phase, 0, Needs{Nodes: ask}
		}
		t.finding = &finding{f.Status, f.Since, now, alone}
	}
	if t.finding.alone {
		return workload.RolledOut, 0, Needs{}
	}
	return phase, again, Needs{}
}

// empty reports whether a workload has had no available replica for so long that it is down. One that
// crashes again and again has some for moments, which do not count.
func (f *Facts) empty(now time.Time) bool {
	none := f.Status.Available == 0 || now.Sub(f.Filled) < CalmAfter
	return none && !f.Empty.IsZero() && now.Sub(f.Empty) >= unhealthyAfter
}

// mute reports whether a workload cannot tell how it is, and changes nothing by its roll.
func (t *track) mute() bool { return t.class == untells && t.facts.Status.Waits != "" }

// silent reports whether a workload rolls, and tells nothing.
func (t *track) silent() bool { return t.class == untells && !t.mute() }

// finding is what was found of the nodes of a workload that waits for its turn, as each
// look at it wants to know: it counts for a while, and as long as the workload stands
// as it did.
type finding struct {
	status workload.Status
	since  time.Time
	when   time.Time
	alone  bool
}

// counts reports whether it is still true.
func (its *finding) counts(f *Facts, now time.Time) bool {
	return its != nil && now.Sub(its.when) < findingFor && its.status == f.Status && its.since.Equal(f.Since)
}

// findingFor is how long a finding counts.
const findingFor = time.Minute
