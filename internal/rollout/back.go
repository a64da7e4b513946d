package rollout

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// wayBack is that of a workload that has failed, and is set to return to its former content (on-failure).
type wayBack struct {
	change  *opened
	content checksum.Fingerprint // that it has failed with
	went    time.Time            // when it went back; zero: it did not yet
	as      checksum.Records
	well    time.Time // since when it is well with its former content
	asked   bool      // its worker is to send it back
	retry   time.Time // not before
	tries   int
}

// Return is what has become of a way back.
type Return struct {
	Workload workload.Ref
	How      reason.Reason // ContentReturned, ReturnDidNotHelp or ReturnImpossible
	Why      string        // of ReturnImpossible
}

// giveBack has workloads go back that have failed, one of a change at a time, and says what has become of those that did.
func (p *Planner) giveBack(now time.Time, out *Orders) {
	for _, t := range p.all {
		switch b := t.back; {
		case t.facts == nil || !t.gone.IsZero():
			t.back = nil
		case b != nil && !b.went.IsZero():
			p.checkBack(t, now, out)
		default:
			p.findBack(t, now, out)
		}
	}
}

// findBack finds out whether a workload has to go back, and may.
func (p *Planner) findBack(t *track, now time.Time, out *Orders) {
	its := t.failing(now)
	if its == nil {
		t.back = nil
		return
	}
	impossible := func(why string) {
		its.stays, t.back = true, nil
		out.Returns = append(out.Returns, Return{t.ref, reason.ReturnImpossible, why})
	}
	switch {
	case len(its.change.copies.changes) > 1:
		impossible(reason.UnreturnedReplicated)
	case its.afterUnproven:
		impossible(reason.UnreturnedUnproven)
	case its.level == 0:
		impossible(reason.UnreturnedDown)
	case t.left[its.change.at.Source] == its.content:
		impossible(reason.UnreturnedTried)
	case !out.again(its.since.Add(p.limits.RolloutDeadline), now):
		impossible(reason.UnreturnedLate)
	case t.back == nil && its.change.givesBack():
	case t.back == nil:
		t.back = &wayBack{change: its.change, content: its.content, asked: true}
		out.Look = append(out.Look, t.ref)
	case !t.back.asked && !out.again(t.back.retry, now):
		t.back.asked = true
		out.Look = append(out.Look, t.ref)
	}
}

// failing returns the part with which a workload has failed before it had proven it, and that it is set to go back from.
// Without a pod that had the content there is nothing to go back from. During a pause nothing rolls, and nothing goes back.
func (t *track) failing(now time.Time) *part {
	policy := &t.facts.Policy
	if !policy.Return || !t.facts.Served || policy.Observe {
		return nil
	}
	if hold, _ := policy.HoldAt(now, time.Time{}); hold.Reason == reason.Paused {
		return nil
	}
	for _, its := range t.parts {
		if !its.isCurrent() || its.take.state != Failed || its.declined || its.resumed || its.stays || its.fallen > 0 {
			continue
		}
		switch its.failure().Cause {
		case Declined, Refused, Uncreated, Outdated:
		default:
			return its
		}
	}
	return nil
}

// givesBack reports whether a workload is on its way back from a change.
func (c *opened) givesBack() bool {
	for _, its := range c.parts {
		if b := its.track.back; b != nil && b.change == c {
			return true
		}
	}
	return false
}

// returns reports whether a workload has to be sent back now.
func (t *track) returns(now time.Time) bool {
	b := t.back
	if b == nil || !b.went.IsZero() || now.Before(b.retry) {
		return false
	}
	its := t.failing(now)
	return its != nil && its.change == b.change && its.content == b.content
}

// NotReturned notes that a workload was not sent back: never again for this content if the answer is final.
func (p *Planner) NotReturned(ref workload.Ref, final bool, now time.Time) {
	t := p.known(ref)
	switch {
	case t.back == nil:
	case final:
		for _, its := range t.parts {
			if its.take != nil && its.change == t.back.change && its.content == t.back.content {
				its.stays = true
			}
		}
		t.back = nil
	default:
		t.back.asked, t.back.retry = false, now.Add(min(FirstRetry<<min(t.back.tries, 20), lateReturn))
		t.back.tries++
	}
}

// lateReturn is the longest wait between two tries to send a workload back.
const lateReturn = 5 * time.Second

// wentBack notes that a workload has gone back, and no longer carries what it has failed with. It reports whether the
// look is the first that shows this.
func (t *track) wentBack(f *Facts, now time.Time) bool {
	b := t.back
	if b == nil || !b.went.IsZero() || f.Declined[b.change.at.Source] != b.content {
		return false
	}
	b.went, b.as = now, f.Records
	if t.left == nil {
		t.left = map[checksum.Source]checksum.Fingerprint{}
	}
	t.left[b.change.at.Source] = b.content
	return true
}

// checkBack says whether a workload that went back is well. That proves nothing.
func (p *Planner) checkBack(t *track, now time.Time, out *Orders) {
	b, f := t.back, t.facts
	how := reason.NoReason
	well := f.Status.Phase == workload.RolledOut && f.Status.Missing == 0 && !f.Status.Behind
	switch soak := max(p.limits.soak(f), f.Policy.Soak.For); {
	case RolledBetween(b.as, f.Records), b.change.content != b.content:
		t.back = nil // it has rolled since, or its source was edited
		return
	case f.Status.Ordered && f.Status.Old: // until its broken pod is deleted, it has not its former content
		b.well, b.went = time.Time{}, now
		return
	case !well:
		b.well = time.Time{}
	case b.well.IsZero():
		b.well = now
		out.again(now.Add(soak), now)
		return
	case !out.again(b.well.Add(soak), now):
		how = reason.ContentReturned
	}
	if how == reason.NoReason && !out.again(b.went.Add(p.limits.RolloutDeadline), now) {
		how = reason.ReturnDidNotHelp
	}
	if how != reason.NoReason {
		out.Returns, t.back = append(out.Returns, Return{Workload: t.ref, How: how}), nil
	}
}
