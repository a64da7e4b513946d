package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// Look notes how a workload is, and tells whether it may roll now, or what it waits for. What
// had come and is held now, is given back.
func (p *Planner) Look(ref workload.Ref, f *Facts, now time.Time) Verdict {
	verdict := p.mayWait(ref, f, now)
	waits := len(f.Review.Untrue) > 0 && verdict.Why == reason.NoReason
	if p.Off() {
		if waits && !verdict.Settles {
			verdict.Roll = true
		}
		return verdict
	}
	if waits {
		newest := f.Mark == p.number
		for _, source := range f.Review.Untrue {
			if at := (SourceRef{ref.Namespace, source}); p.changes[at] == nil {
				p.find(at, now)
			}
		}
		if newest { // what is found now was known
			f.Mark = p.number
		}
	}
	_, isNew := p.unexamined[ref]
	past := isNew && f.Served && f.Status.Phase == workload.Rolling
	last := isNew && f.mayBeLast()
	delete(p.unexamined, ref)
	if !past && !last && !p.Concerned(ref, f.Sources) {
		return verdict
	}
	t := p.track(ref)
	t.past, t.last = t.past || past, t.last || last
	if t.turn != nil && !t.uncertain && !slices.Equal(t.facts.Review.Untrue, f.Review.Untrue) && len(f.Review.Untrue) > 0 {
		t.turn = nil // that was for something else
	}
	p.observe(t, f, isNew, now)
	t.facts, t.hold = f, verdict.Why
	if !waits {
		if t.since = (time.Time{}); !t.uncertain {
			t.turn, t.tries, t.retry = nil, 0, time.Time{}
		}
		verdict.Return = t.returns(now)
		return verdict
	}
	if t.turn == nil && t.returns(now) {
		return Verdict{Return: true}
	}
	again, need := p.classify(t, now)
	if need.Any() {
		return Verdict{Needs: need}
	}
	if t.since.IsZero() {
		t.since = now
	}
	t.due = now.Add(verdict.Wait) // until when it settles
	if verdict.Settles {
		return verdict
	}
	if t.turn != nil {
		t.turn = t.turnAt(t.turn.at)
		return Verdict{Roll: true}
	}
	return p.why(t, again)
}

// mayWait tells what keeps a workload with changed sources from waiting for its turn, or for how
// long its sources have yet to settle.
func (p *Planner) mayWait(ref workload.Ref, f *Facts, now time.Time) Verdict {
	if len(f.Review.Untrue) == 0 {
		return Verdict{}
	}
	if why := f.Barred(); why != reason.NoReason {
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
	if hold := facts.Held(pace.last(), now); hold.Reason != reason.NoReason {
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
	if wait > 0 && facts.Policy.MinInterval == 0 {
		return Verdict{Why: reason.Paced, Wait: wait}
	}
	return Verdict{}
}

// brokenPause is the longest pause of a workload that is broken.
const brokenPause = time.Minute

// why is what a workload waits for that nothing but its turn keeps.
func (p *Planner) why(t *track, again time.Duration) Verdict {
	verdict := Verdict{Why: reason.Turn, Wait: again, Since: t.since}
	for _, its := range t.parts {
		switch c := its.change; {
		case its.waits() != Waiting:
		case c.halted != workload.Ref{}:
			verdict.Why, verdict.Halted = reason.Halted, c.halted
			if c.stop != nil && c.stop.take != nil { // nil: that it declined was taken back since the last cycle
				verdict.HaltedWhy = c.stop.failure()
			}
		case c.foreign && verdict.Halted == workload.Ref{}:
			verdict.Why = reason.Halted
		}
	}
	return verdict
}

// Barred tells what keeps a workload from rolling at any time: something that it requires is
// missing, or a setting cannot be read. NoReason: nothing does.
func (f *Facts) Barred() reason.Reason {
	switch {
	case len(f.Review.Missing) > 0:
		return f.Review.Missing[0].Reason
	case !f.Review.MayRoll() || len(f.Policy.Faults) > 0:
		return reason.UnreadableSetting
	}
	return reason.NoReason
}

// Held is the setting that holds a workload, and until when; of NoReason when none does.
// last is our own last roll of it.
func (f *Facts) Held(last, now time.Time) checksum.Hold {
	if f.Policy.Observe {
		return checksum.Hold{Reason: reason.ObserveMode}
	}
	hold, _ := f.Policy.HoldAt(now, latest(f.Status.Current, last)) // what its status tells may be older
	return hold
}
