package rollout

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// mayWait tells what keeps a workload with changed sources from waiting for its turn, or for how
// long its sources have yet to settle.
func (p *Planner) mayWait(ref workload.Ref, f *Facts, now time.Time) Verdict {
	if len(f.Review.Untrue) == 0 {
		return Verdict{}
	}
	if why := f.Barred(); why != checksum.NoReason {
		wait := p.Settles(ref, f.Review.Missing, now)
		return Verdict{Why: why, Settles: wait > 0, Wait: wait}
	}
	held := p.known(ref).holds(f, now)
	for _, source := range f.Review.Untrue {
		if wait := p.settling.wait(SourceRef{ref.Namespace, source}, now); wait > 0 && (!held.Settles || wait > held.Wait) {
			held.Settles, held.Wait = true, wait
		}
	}
	return held
}

// Settles is how long the last of some sources has to settle yet: one that is missing may be about
// to be put back.
func (p *Planner) Settles(ref workload.Ref, missing []checksum.Finding, now time.Time) (wait time.Duration) {
	for _, finding := range missing {
		wait = max(wait, p.settling.wait(SourceRef{ref.Namespace, finding.Source}, now))
	}
	return wait
}

// holds is what holds a workload, of settings and the pace of its sources. What is broken waits
// for its pace for a minute at most, so that it can be mended.
func (t *track) holds(f *Facts, now time.Time) Verdict {
	pace, facts, broken := t.paceOf(f.UID), *f, t.broken()
	if broken {
		facts.Policy.MinInterval = 0
	}
	if hold := facts.Held(pace.last(), now); hold.Reason != checksum.NoReason {
		held := Verdict{Why: hold.Reason, Hold: hold}
		if !hold.Until.IsZero() {
			held.Wait = hold.Until.Sub(now)
		}
		return held
	}
	wait := pace.slowed(now)
	if broken {
		wait = min(wait, pace.last().Add(brokenPause).Sub(now))
	}
	if wait > 0 && f.Policy.MinInterval == 0 {
		return Verdict{Why: checksum.Paced, Wait: wait}
	}
	return Verdict{}
}

// brokenPause is the longest pause of a workload that is broken.
const brokenPause = time.Minute

// classify finds out how a workload that waits stands in the order. again is when to look again.
func (p *Planner) classify(t *track, now time.Time) (again time.Duration, need Needs) {
	f := t.facts
	phase, again, need := p.phaseOf(t, now)
	if need.Any() {
		return again, need
	}
	fell := phase == workload.RolledOut && f.Relapsed && now.Sub(f.Calm) < CalmAfter
	if fell {
		again = CalmAfter - now.Sub(f.Calm)
	}
	switch {
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
	return again, Needs{}
}

// phaseOf is how far a workload is that waits for its turn. One that lacks nothing, but on nodes
// that are not ready, is rolled out.
func (p *Planner) phaseOf(t *track, now time.Time) (phase workload.Phase, again time.Duration, need Needs) {
	f := t.facts
	phase = f.Status.Phase
	if phase != workload.Rolling {
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
	if known := t.finding; known == nil || now.Sub(known.when) >= findingFor || known.status != f.Status || !known.since.Equal(f.Since) {
		if f.Pods == nil {
			return phase, 0, Needs{Pods: true}
		}
		if f.Pods.Access == Unread {
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

// why is what a workload waits for that nothing but its turn keeps.
func (p *Planner) why(t *track, again time.Duration) Verdict {
	verdict := Verdict{Why: checksum.Turn, Wait: again, Since: t.since}
	for _, its := range t.parts {
		switch c := its.change; {
		case its.waits() != Waiting:
		case c.halted != workload.Ref{}:
			verdict.Why, verdict.Halted = checksum.Halted, c.halted
			if c.stop != nil {
				verdict.HaltedWhy = c.stop.why
			}
		case c.foreign && verdict.Halted == workload.Ref{}:
			verdict.Why = checksum.Halted
		}
	}
	return verdict
}

// Barred tells what keeps a workload from rolling at any time: something that it requires is
// missing, or a setting cannot be read. NoReason: nothing does.
func (f *Facts) Barred() checksum.Reason {
	switch {
	case len(f.Review.Missing) > 0:
		return f.Review.Missing[0].Reason
	case !f.Review.MayRoll() || len(f.Policy.Faults) > 0:
		return checksum.UnreadableSetting
	}
	return checksum.NoReason
}

// Held is the setting that holds a workload, and until when; of NoReason when none does.
// last is our own last roll of it.
func (f *Facts) Held(last, now time.Time) checksum.Hold {
	if f.Policy.Observe {
		return checksum.Hold{Reason: checksum.ObserveMode}
	}
	current := f.Status.Current // as its status tells, and no sooner than our own last roll
	if last.After(current) {
		current = last
	}
	if hold, holds := f.Policy.HoldAt(now, current); holds {
		return hold
	}
	return checksum.Hold{}
}

// empty reports whether a workload has had no available replica for so long that it is down. One that
// crashes again and again has some for moments, which do not count.
func (f *Facts) empty(now time.Time) bool {
	none := f.Status.Available == 0 || now.Sub(f.Filled) < CalmAfter
	return none && !f.Empty.IsZero() && now.Sub(f.Empty) >= unhealthyAfter
}
