package rollout

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Progress is how far a workload is with what a source holds.
type Progress struct {
	State State
	Since time.Time // when it entered State; zero if that is not known
	Why   Failure   // of Failed
}

// ProgressOf returns how far a workload is with what a source holds. known is false while a new leader
// has not reconciled the workload, or its contents are not established.
func (p *Planner) ProgressOf(ref workload.Ref, source checksum.Source) (progress Progress, known bool) {
	t := p.known(ref)
	if _, unexamined := p.unexamined[ref]; unexamined || t.unsure() {
		return Progress{}, false
	}
	for _, its := range t.parts {
		switch {
		case its.change.at.Source != source:
			continue
		case !its.isCurrent() || its.declined:
			return Progress{State: its.waits()}, true
		case its.take.state == Failed && its.resumed:
			return Progress{State: Current}, true
		case its.take.state == Failed:
			return Progress{Failed, its.since, its.failure()}, true
		}
		return Progress{State: its.take.state, Since: its.since}, true
	}
	return Progress{State: Current}, true
}

// HaltOf returns the failure that halts the change of a source; false if it is not halted.
func (p *Planner) HaltOf(at SourceRef) (news News, halted bool) {
	switch c := p.changes[at]; {
	case c == nil:
	case c.stop != nil && c.stop.take != nil:
		return News{Source: at, By: c.stop.track.ref, Why: c.stop.failure()}, true
	case c.foreign:
		return News{Source: at, Foreign: true}, true
	}
	return News{}, false
}

// reported is what Orders.Changed compares of a change.
type reported struct {
	counted
	foreign bool
}

// noteChanged orders a report on each change whose numbers of workloads have changed since the last cycle.
func (p *Planner) noteChanged(out *Orders) {
	for _, c := range p.open {
		if is := (reported{c.counted, c.foreign}); c.reported != is {
			c.reported = is
			out.Changed = append(out.Changed, c.at)
		}
	}
}
