package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// find looks for a rollout that others have begun with what a change brought, or who
// led before, and has it followed. known is what is followed already.
func (p *Plan) find(user workload.Ref, f *Facts, known *attempt, now time.Time) (*attempt, Verdict) {
	if len(f.Records.Stamps) == 0 {
		return known, Verdict{}
	}
	status := &f.Status
	concerned := p.concerned(user, f, now)
	past := known == nil && status.Phase == workload.Rolling && p.isPast(user) && f.Served
	if len(concerned) == 0 && !past {
		return known, Verdict{}
	}
	if status.Phase == workload.Unreported {
		return p.findMuted(user, f, concerned, known, now)
	}
	if f.Pods == nil {
		verdict := Verdict{Do: ReadPods}
		if known != nil {
			verdict.Selector = known.health.selector
		}
		return known, verdict
	}
	if f.Pods.Access == Unread {
		return known, Verdict{Retry: true}
	}
	began, proves := beginning(f.Pods.All, f.Records.Stamps)
	if began.IsZero() && status.Phase == workload.Failed {
		began = status.FailedAt // not even a pod could be made, or none may be seen
	}
	maps.DeleteFunc(concerned, func(_ SourceRef, written time.Time) bool { return began.Before(written) })
	past = past && now.Sub(began) < p.limits.RolloutDeadline
	if len(concerned) == 0 && !past {
		return known, Verdict{}
	}
	places := slices.Collect(maps.Keys(concerned))
	if known == nil && status.Phase == workload.RolledOut && last(Made(f.Pods.All, f.Records.Stamps), p.limits.soak(f), now) {
		p.prove(places)
		return nil, Verdict{}
	}
	r := p.board(user, began, places, proves && !p.wasUnwell(user, f.Records))
	r.health.selector = &f.Pods.Selector
	return r, Verdict{}
}

// concerned are the sources whose changes wait for a workload to be looked at, and
// whose content it carries, with when that was written.
func (p *Plan) concerned(user workload.Ref, f *Facts, now time.Time) map[SourceRef]time.Time {
	status := &f.Status
	over := status.Phase == workload.RolledOut || status.Phase == workload.Unreported
	concerned := map[SourceRef]time.Time{}
	for at, found := range p.unproven(user) {
		if over && !found || !f.carries(at.Source, p.cluster.Content(at)) {
			continue // nothing has rolled for it that we do not know of
		}
		written := p.cluster.Written(at)
		if written.IsZero() { // nobody knows; what is recent may be by it
			written = now.Add(-p.limits.RolloutDeadline)
		}
		if status.Phase == workload.RolledOut && !status.Current.IsZero() && status.Current.Before(written) {
			continue // it has rolled before that was written
		}
		concerned[at] = written
	}
	return concerned
}

// findMuted looks for a rollout of a workload that has become unable to tell its health
// since what changed was written: somebody has scaled it to nothing, or paused it.
// Unless it was healthy before, it has failed.
func (p *Plan) findMuted(user workload.Ref, f *Facts, concerned map[SourceRef]time.Time, known *attempt, now time.Time) (*attempt, Verdict) {
	if known != nil {
		return known, Verdict{}
	}
	if f.Muted == nil {
		return nil, Verdict{Do: ReadMuted}
	}
	muted := *f.Muted
	maps.DeleteFunc(concerned, func(_ SourceRef, written time.Time) bool { return muted.Since.Before(written) })
	if len(concerned) == 0 {
		return nil, Verdict{}
	}
	if f.Pods == nil {
		return nil, Verdict{Do: ReadPods}
	}
	pods, soak := f.Pods.All, p.limits.soak(f)
	trouble, _, _ := troubleOf(Made(pods, f.Records.Stamps), now, soak)
	began, proves := beginning(pods, f.Records.Stamps)
	switch {
	case f.Pods.Access == Unread:
		return nil, Verdict{Retry: true}
	case f.Pods.Access == Forbidden:
		return nil, Verdict{}
	case trouble != "":
		maps.DeleteFunc(concerned, func(_ SourceRef, written time.Time) bool { return began.Before(written) })
	case slices.ContainsFunc(pods, func(pod workload.Pod) bool { return alive(&pod) }):
		return nil, Verdict{}
	case wasHealthy(&muted, soak) || muted.RolledOut.After(muted.Since.Add(afterMuting)):
		return nil, Verdict{} // so it was before that, or it has rolled since
	default:
		trouble = f.Status.Waits + ", and nothing shows that it was healthy before"
		for _, written := range concerned {
			if written.After(began) {
				began = written // nobody knows when it began, but for that
			}
		}
	}
	if len(concerned) == 0 {
		return nil, Verdict{}
	}
	r := p.board(user, began, slices.Collect(maps.Keys(concerned)), proves && !p.wasUnwell(user, f.Records))
	r.health.selector = &f.Pods.Selector
	p.halt(user, trouble, f.Records)
	return r, Verdict{}
}

// wasHealthy reports whether a workload was rolled out, and available for long enough,
// when somebody scaled or paused it.
func wasHealthy(muted *workload.Muted, soak time.Duration) bool {
	return !muted.RolledOut.IsZero() && muted.RolledOut.Before(muted.Since) && !muted.Available.After(muted.Since.Add(-soak))
}

// afterMuting is how long the status of a workload that was scaled to nothing takes
// to say that it is rolled out, as nothing is left to roll.
const afterMuting = 10 * time.Second
