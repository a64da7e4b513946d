package rollout

import (
	"time"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// watchAll judges the rollouts that are watched, and finds out about those that may have to be.
// It reports whether a verdict has fallen.
func (p *Planner) watchAll(now time.Time, out *Orders) (fell bool) {
	for _, t := range p.sortedTracks(func(t *track) bool {
		return t.facts != nil && t.gone.IsZero() && (t.trial != nil || t.unsure())
	}) {
		if t.facts.Pods != nil {
			t.needs = Needs{} // they are there, or cannot be had
		}
		if t.unsure() {
			if need := p.infer(t, now); need.Any() {
				t.asks(need, out)
				continue
			}
			t.sure()
			fell = true
		}
		if t.trial != nil && p.watch(t, now, out) {
			fell = true
		}
	}
	return fell
}

// unsure reports whether it is not known yet what a workload took.
func (t *track) unsure() bool {
	return t.past || t.last || t.some(func(its *part) bool { return its.unsure })
}

// sure notes that it is known.
func (t *track) sure() {
	t.past, t.last = false, false
	for _, its := range t.parts {
		its.unsure = false
	}
}

// asks has a workload looked at, with what has to be read. Who cannot read it tries again.
func (t *track) asks(need Needs, out *Orders) {
	tried := t.facts.Pods != nil && t.facts.Pods.Access == Unread
	if !tried && !t.needs.Any() {
		out.Look = append(out.Look, t.ref)
	}
	t.needs = need
}

// watch judges one rollout, and reports whether a verdict has fallen, or it uses a slot again or no longer.
func (p *Planner) watch(t *track, now time.Time, out *Orders) (fell bool) {
	f, r := t.facts, t.trial
	r.health.soak = p.soakOf(t)
	used := r.health.well.IsZero()
	is := r.judge(f, &p.limits, now)
	fell = used != r.health.well.IsZero()
	if is.need.Any() {
		is.need.Selector = r.health.selector
		t.asks(is.need, out)
		return fell
	}
	switch {
	case is.state == Untold && r.failed:
		is.state = Failed // nothing says that it would be healthy
	case is.state == Untold && r.health.trouble != "" && f.Status.Waits != "" && now.Sub(r.health.troubled) >= p.limits.CrashDeadline/looksDuring:
		is = judgement{state: Failed, why: f.fails(r.health.trouble, "since then "+f.Status.Waits, now)} // somebody has scaled it to nothing, or paused it
	}
	if is.state == Failed && !r.failed && is.why.Cause != Outdated && t.endsWatch() {
		is.state = Proven
	}
	switch is.state {
	case Proven:
		p.provesWell(t, now, out)
		return true
	case Untold:
		t.tellsNothing(now)
		out.Ended = append(out.Ended, Ended{Workload: t.ref, How: reason.CannotTell})
		if t.trial = nil; t.halts() {
			r.failed, t.trial = true, r // by what it failed with before
		}
		return true
	case Failed:
		if why := t.whyFailed(); r.failed && is.why != nil && (is.why.Cause == Outdated || why != nil && why.Cause == Outdated) {
			t.explain(is.why, out)
		}
		if !r.failed {
			r.failed, fell = true, true
			if told := t.failTakes(is.why, now); told || !r.found {
				out.Ended = append(out.Ended, Ended{t.ref, reason.RolloutFailed, *is.why})
			}
		}
	case OnTrial:
		fell = !f.Status.Behind && t.goesOn(now) || fell // else it is not known whether it still stands
	}
	wait := p.limits.lookEvery()
	if r.failed {
		wait *= failedLooks
	}
	if !r.health.well.IsZero() && !r.standing && !f.Status.Behind {
		wait = min(wait, max(r.health.soak-r.health.wellFor(now), soonestLook))
	}
	out.again(now.Add(wait), now)
	return fell
}

// provesWell ends a rollout: the workload is well with what it carries. What it failed with and
// does not carry stays failed.
func (p *Planner) provesWell(t *track, now time.Time, out *Orders) {
	r, ended := t.trial, false
	proved := now
	if r.found { // its pods may have been made anew since
		if proved = t.facts.Status.Current; proved.IsZero() {
			proved = r.began
		}
		proved = proved.Add(r.health.soak)
	}
	for _, its := range t.parts {
		switch state, over := its.state(); {
		case its.take == nil, its.declined:
		case !over && t.facts.carries(its.change.at.Source, its.change.content):
			if ended = ended || state != Proven; state != Untold || r.failed {
				its.proves(now)
				p.provesContent(its.change)
				its.change.proved = latest(its.change.proved, proved)
			}
		case !its.fell():
			its.take, ended = its.takenBefore(now), true // it is well with what the source held before
		default:
			its.enters(Failed, now)
		}
	}
	t.trial, t.needs = nil, Needs{}
	if ended {
		out.Ended = append(out.Ended, Ended{Workload: t.ref, How: reason.Healthy})
	}
}

// tries reports whether a workload has yet to show how it does with what it took.
func (t *take) tries() bool { return t != nil && (t.state == OnTrial || t.state == Standing) }

// tellsNothing notes that a workload cannot tell how it does with what it took.
func (t *track) tellsNothing(now time.Time) {
	for _, its := range t.parts {
		if its.tries() {
			its.broken = false
			its.enters(Untold, now)
		}
	}
}

// whyFailed is why a workload has failed, nil when it has not.
func (t *track) whyFailed() *Failure {
	for _, its := range t.parts {
		if its.take != nil && its.take.state == Failed && its.why != nil {
			return its.why
		}
	}
	return nil
}

// explain replaces why a workload has failed with what its source holds, and reports that once.
func (t *track) explain(why *Failure, out *Orders) {
	for _, its := range t.parts {
		if its.isCurrent() && its.take.state == Failed && !its.declined && its.failure() != *why {
			its.why = why
			out.Ended = append(out.Ended, Ended{t.ref, reason.RolloutFailed, *why})
		}
	}
}

// failTakes notes that a workload has failed with what it took, and reports whether that halts
// anything.
func (t *track) failTakes(why *Failure, now time.Time) (counts bool) {
	for _, its := range t.parts {
		if its.tries() {
			began := t.trial.began
			if !t.trial.found && its.began.After(began) {
				began = its.began
			}
			its.fails(began, why, now)
			counts = true
		}
	}
	return counts
}

// goesOn notes whether a rollout stands at a pause of its own.
func (t *track) goesOn(now time.Time) (changed bool) {
	is := t.trial.stands(t.facts, now)
	if t.trial.failed || t.trial.standing == is {
		return false
	}
	t.trial.standing = is
	state := OnTrial
	if is {
		state = Standing
	}
	for _, its := range t.parts {
		if its.tries() {
			its.enters(state, now)
		}
	}
	return true
}

// Ended is what became of a rollout.
type Ended struct {
	Workload workload.Ref
	How      reason.Reason // Healthy, RolloutFailed or CannotTell
	Why      Failure       // of RolloutFailed
}
