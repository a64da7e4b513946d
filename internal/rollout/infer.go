package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// infer finds out whether a workload took what it carries by a change that is open, or by one
// before a new leader: others have rolled it, or who led before. Such a rollout is watched.
func (p *Planner) infer(t *track, now time.Time) Needs {
	f, status := t.facts, &t.facts.Status
	if len(f.Records.Stamps) == 0 {
		return Needs{}
	}
	switch {
	case !t.last:
	case t.some(func(its *part) bool { return its.unsure && f.carries(its.change.at.Source, its.change.content) }):
		t.last = false // others show that there is a change
	case f.LastRoll == nil:
		return Needs{LastRoll: true, Pods: true}
	default:
		p.reopen(t, now)
	}
	concerned := p.maybeTaken(t, now)
	past := t.past && t.trial == nil && status.Phase == workload.Rolling && f.Served
	switch {
	case len(concerned) == 0 && !past:
		return Needs{}
	case status.Phase == workload.Unreported:
		return p.inferMuted(t, concerned, now)
	case f.Pods == nil:
		return Needs{Pods: true}
	}
	soak := p.soakOf(t)
	began, proves := p.beganAt(f, concerned, soak, now)
	maps.DeleteFunc(concerned, func(_ *part, written time.Time) bool { return began.Before(written) })
	past = past && now.Sub(began) < p.limits.RolloutDeadline && p.byAChange(t.ref.Namespace, f, began)
	young := func(pod workload.Pod) bool {
		return pod.Trouble != "" || pod.Started.IsZero() || now.Sub(pod.Started) < soak
	}
	if t.trial == nil && status.Phase == workload.RolledOut && !f.blind(soak, now) && !slices.ContainsFunc(Made(f.Pods.All, f.Records.Stamps), young) {
		for its, written := range concerned { // its pods may have been made anew since
			its.takes(began, now)
			its.level = status.Available
			its.proves(now)
			its.change.proved = latest(its.change.proved, written)
		}
		return Needs{}
	}
	if len(concerned) > 0 || past {
		t.adopt(began, concerned, proves, now)
	}
	return Needs{}
}

// mayBeLast reports whether a workload is not well, so that it may have failed with a change for which nothing waits any
// more: then no other workload shows a new leader that there was one.
func (f *Facts) mayBeLast() bool {
	phase := f.Status.Phase
	unwell := phase == workload.Rolling || phase == workload.Failed || phase == workload.RolledOut && f.Status.Missing > 0
	return f.Served && !f.Policy.Observe && len(f.Records.Stamps) > 0 && unwell
}

// reopen opens the changes that the last rollout of a workload has brought, and that nothing waits for any more. What a
// workload carries for a day is not what it fails with now. A content that comes again may have a revision from before: then
// it is as old as the last write of its source.
func (p *Planner) reopen(t *track, now time.Time) {
	t.last = false
	for _, source := range t.facts.LastRoll.Sources {
		at := SourceRef{t.ref.Namespace, source}
		if now.Sub(latest(t.facts.LastRoll.Began, p.cluster.Written(at))) >= remembered {
			continue
		}
		if p.changes[at] == nil && p.cluster.Content(at) != nil {
			p.find(at, now)
		}
		if c := p.changes[at]; c != nil && t.facts.carries(source, c.content) {
			if its := t.join(c); its.take == nil {
				its.unsure = true
			}
		}
	}
}

// maybeTaken are the sources of which it is not known whether a workload took what it carries by
// their change, with when that was written.
func (p *Planner) maybeTaken(t *track, now time.Time) map[*part]time.Time {
	status := &t.facts.Status
	over := status.Phase == workload.RolledOut || status.Phase == workload.Unreported
	concerned := map[*part]time.Time{}
	for _, its := range t.parts {
		c := its.change
		if !its.unsure || over && !c.found || !t.facts.carries(c.at.Source, c.content) {
			continue // nothing has rolled for it that is not known
		}
		written := p.cluster.Written(c.at)
		if written.IsZero() { // nobody knows; what is recent may be by it
			written = now.Add(-p.limits.RolloutDeadline)
		}
		if status.Phase == workload.RolledOut && !status.Current.IsZero() && status.Current.Before(written) {
			continue // it has rolled before that was written
		}
		concerned[its] = written
	}
	return concerned
}

// blind reports whether neither pods nor the status tell that a workload is well.
func (f *Facts) blind(soak time.Duration, now time.Time) bool {
	return f.Pods.Access == Unread || f.Pods.Access != Seen && !f.wellSince(soak, now)
}

// beganAt is when the rollout of a workload has begun that others rolled, as its pods and its
// status show it, and whether it may have been well before.
func (p *Planner) beganAt(f *Facts, concerned map[*part]time.Time, soak time.Duration, now time.Time) (began time.Time, wasWell bool) {
	status := &f.Status
	began, wasWell = beginning(f.Pods.All, f.Records.Stamps)
	if began.IsZero() && status.Phase == workload.Failed {
		began = status.FailedAt // not even a pod could be made, or none may be seen
	}
	if began.IsZero() && status.Phase == workload.Rolling {
		began = ending(f.Pods.All, f.Records.Stamps)
	}
	blind := f.blind(soak, now)
	if !began.IsZero() || !blind && status.Phase != workload.Rolling {
		return began, wasWell
	}
	if began = status.Current; began.IsZero() || status.Phase == workload.Rolling { // which may be of the revision before
		after := now.Add(-p.limits.RolloutDeadline)
		delays := func(pod workload.Pod) bool {
			return pod.Deleting || f.Status.Ordered && alive(&pod) && pod.Trouble != ""
		}
		if blind && status.Phase != workload.RolledOut || slices.ContainsFunc(f.Pods.All, delays) {
			after = time.Time{} // nor does it tell how long ago
		}
		began = time.Time{}
		for _, written := range concerned { // it may be by what changed
			if written.After(after) {
				began = latest(began, written)
			}
		}
	}
	return began, wasWell
}

// byAChange reports whether a rollout under way brings what a change brought: pods with other
// stamps are left, or it began soon after an edit. Others (a new image, a node that is drained)
// are none of ours. Of what ends all pods first none is left: each counts.
func (p *Planner) byAChange(namespace string, f *Facts, began time.Time) bool {
	for _, source := range f.Sources {
		written := p.cluster.Written(SourceRef{namespace, source})
		if !began.Before(written) && began.Sub(written) < p.limits.RolloutDeadline {
			return true
		}
	}
	return f.Status.Recreates || slices.ContainsFunc(f.Pods.All, func(pod workload.Pod) bool { return alive(&pod) && !pod.Carries(f.Records.Stamps) })
}

// adopt has a rollout watched that others have begun, and that may prove some contents, or fail
// with them.
func (t *track) adopt(began time.Time, concerned map[*part]time.Time, proves bool, now time.Time) {
	if t.trial == nil {
		t.trial = &trial{began: began, found: true, level: t.facts.Status.Available}
	}
	if t.facts.Pods.Access != Unread {
		t.trial.health.selector = &t.facts.Pods.Selector
	}
	why := t.whyFailed()
	for its := range concerned {
		its.takes(began, now)
		if its.level, its.down = t.trial.level, !proves; t.trial.failed { // with something that it reads beside
			its.fails(began, why, now)
		}
	}
}

// inferMuted is infer of a workload that has become unable to tell its health since what changed
// was written: somebody has scaled it to nothing, or paused it. Unless it was healthy before, it
// has failed.
func (p *Planner) inferMuted(t *track, concerned map[*part]time.Time, now time.Time) Needs {
	f := t.facts
	switch {
	case t.trial != nil:
		return Needs{}
	case f.Muted == nil || f.Pods == nil:
		return Needs{Muted: true, Pods: true}
	}
	muted := *f.Muted
	maps.DeleteFunc(concerned, func(_ *part, written time.Time) bool { return muted.Since.Before(written) })
	pods, soak := f.Pods.All, p.limits.soak(f) // no first soak: nothing is proven here
	verdict, wasHealthy := "", !muted.RolledOut.IsZero() && muted.RolledOut.Before(muted.Since) && !muted.Available.After(muted.Since.Add(-soak))
	trouble, _, _ := troubleOf(Made(pods, f.Records.Stamps), now, soak)
	began, proves := beginning(pods, f.Records.Stamps)
	switch {
	case len(concerned) == 0 || f.Pods.Access == Forbidden:
		return Needs{}
	case f.Pods.Access == Unread:
		return Needs{Muted: true, Pods: true}
	case trouble != "":
		maps.DeleteFunc(concerned, func(_ *part, written time.Time) bool { return began.Before(written) })
	case slices.ContainsFunc(pods, func(pod workload.Pod) bool { return alive(&pod) }):
		return Needs{}
	case wasHealthy || muted.RolledOut.After(muted.Since.Add(afterMuting)):
		return Needs{} // so it was before that, or it has rolled since
	default:
		verdict = f.Status.Waits + ", and nothing shows that it was healthy before"
		for _, written := range concerned {
			began = latest(began, written) // nobody knows when it began, but for that
		}
	}
	if len(concerned) > 0 {
		t.adopt(began, concerned, proves, now)
		t.trial.failed = true
		t.failTakes(f.fails(trouble, verdict, now), now)
	}
	return Needs{}
}

// wellSince reports whether the status alone tells that a workload is well, and was for the
// soak: one that crashes again and again is rolled out for moments. One that may not tell, or
// stands at a pause, is not under way.
func (f *Facts) wellSince(soak time.Duration, now time.Time) bool {
	switch current := f.Status.Current; f.Status.Phase {
	case workload.Rolling, workload.Failed:
		return false
	case workload.RolledOut:
		return !current.IsZero() && now.Sub(current) >= soak
	}
	return true
}

// ending is when the last of the pods with other stamps was told to end, zero when none was.
func ending(pods []workload.Pod, stamps map[string]string) (last time.Time) {
	for i := range pods {
		if pod := &pods[i]; pod.Deleting && !pod.Carries(stamps) && pod.Ending.After(last) {
			last = pod.Ending
		}
	}
	return last
}

// afterMuting is how long the status of a workload that was scaled to nothing takes
// to say that it is rolled out, as nothing is left to roll.
const afterMuting = 10 * time.Second
