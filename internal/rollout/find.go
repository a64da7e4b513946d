package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// findAttempt looks for a rollout that others have begun with what a change brought, or who
// led before, and has it followed.
func (p *Plan) findAttempt(r *record, f *Facts, now time.Time) Verdict {
	if len(f.Records.Stamps) == 0 {
		return Verdict{}
	}
	known, status := r.attempt, &f.Status
	concerned := p.concerned(r, f, now)
	past := known == nil && status.Phase == workload.Rolling && r.unexamined && f.Served
	switch {
	case len(concerned) == 0 && !past:
		return Verdict{}
	case status.Phase == workload.Unreported:
		return p.findMuted(r, f, concerned, now)
	case f.Pods == nil && known != nil:
		return Verdict{Do: ReadPods, Selector: known.health.selector}
	case f.Pods == nil:
		return Verdict{Do: ReadPods}
	}
	began, proves := beginning(f.Pods.All, f.Records.Stamps)
	soak := p.soak(r, f)
	if began.IsZero() && status.Phase == workload.Failed {
		began = status.FailedAt // not even a pod could be made, or none may be seen
	}
	if began.IsZero() && status.Phase == workload.Rolling {
		began = ending(f.Pods.All, f.Records.Stamps)
	}
	blind := f.Pods.Access == Unread || f.Pods.Access != Seen && !f.wellSince(soak, now)
	if began.IsZero() && (blind || status.Phase == workload.Rolling) { // nobody can see when, or no pod is made yet
		if began = status.Current; began.IsZero() || status.Phase == workload.Rolling { // which may be of the revision before
			after := now.Add(-p.limits.RolloutDeadline)
			if blind && status.Phase != workload.RolledOut || f.Broken() != "" || slices.ContainsFunc(f.Pods.All, func(pod workload.Pod) bool { return pod.Deleting }) {
				after = time.Time{} // nor does it tell how long ago
			}
			began = recent(concerned, after) // it may be by what changed
		}
	}
	maps.DeleteFunc(concerned, func(_ SourceRef, written time.Time) bool { return began.Before(written) })
	past = past && now.Sub(began) < p.limits.RolloutDeadline && p.byChange(r, f, began)
	if len(concerned) == 0 && !past {
		return Verdict{}
	}
	sources := slices.SortedFunc(maps.Keys(concerned), SourceRef.Compare)
	if known == nil && status.Phase == workload.RolledOut && !blind && last(Made(f.Pods.All, f.Records.Stamps), soak, now) {
		for _, at := range sources {
			p.prove(at, concerned[at]) // its pods may have been made anew since
		}
		return Verdict{}
	}
	p.adopt(r, f, began, sources, proves && !r.wasUnhealthy(f.Records), now)
	return Verdict{}
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

// recent is when the last of some sources was written, zero when that was before a time.
func recent[K comparable](written map[K]time.Time, after time.Time) (last time.Time) {
	for _, at := range written {
		if at.After(after) && at.After(last) {
			last = at
		}
	}
	return last
}

// byChange reports whether a rollout under way brings what a change brought: pods with
// other stamps are left, or it began soon after an edit. Others (a new image, a node
// that is drained) are none of ours. Of what ends all pods first none is left: each counts.
func (p *Plan) byChange(r *record, f *Facts, began time.Time) bool {
	for _, source := range f.Sources {
		written := p.cluster.Written(SourceRef{r.ref.Namespace, source})
		if !began.Before(written) && began.Sub(written) < p.limits.RolloutDeadline {
			return true
		}
	}
	return f.Status.Recreates || slices.ContainsFunc(f.Pods.All, func(pod workload.Pod) bool { return alive(&pod) && !pod.Carries(f.Records.Stamps) })
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

// wasUnwell reports whether a workload is known not to have been healthy before what
// is on record.
func (r *record) wasUnhealthy(records checksum.Records) bool {
	return r.unhealthy != nil && r.unhealthy.Equal(records)
}

// adopt has a rollout followed that others have begun, or who led before, and lets it
// count for the changes of some sources, and halt them or not. One that is followed
// already counts for more.
func (p *Plan) adopt(r *record, f *Facts, began time.Time, sources []SourceRef, proves bool, now time.Time) {
	p.update(r, now, func() {
		if r.attempt == nil {
			r.attempt = &attempt{trial: trial{began: began, found: true, level: f.Status.Available}, counts: map[*change]bool{}, holds: map[*change]hold{}, ours: len(sources) == 0}
		}
		a := r.attempt
		if f.Pods != nil {
			a.health.selector = &f.Pods.Selector
		}
		for _, at := range sources {
			if c := p.changes[at]; c != nil {
				a.counts[c.root()] = proves || a.counts[c.root()]
				if !slices.Contains(a.sources, at) {
					a.sources = append(a.sources, at)
				}
			}
		}
	})
}

// concerned are the sources whose changes wait for a workload to be looked at, and
// whose content it carries, with when that was written.
func (p *Plan) concerned(r *record, f *Facts, now time.Time) map[SourceRef]time.Time {
	status := &f.Status
	over := status.Phase == workload.RolledOut || status.Phase == workload.Unreported
	concerned := map[SourceRef]time.Time{}
	for at, found := range r.unproven() {
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
func (p *Plan) findMuted(r *record, f *Facts, concerned map[SourceRef]time.Time, now time.Time) Verdict {
	if r.attempt != nil {
		return Verdict{}
	}
	if f.Muted == nil {
		return Verdict{Do: ReadMuted}
	}
	muted := *f.Muted
	maps.DeleteFunc(concerned, func(_ SourceRef, written time.Time) bool { return muted.Since.Before(written) })
	if len(concerned) == 0 {
		return Verdict{}
	}
	if f.Pods == nil {
		return Verdict{Do: ReadPods}
	}
	pods, soak := f.Pods.All, p.limits.soak(f) // no first soak: nothing is proven here
	trouble, _, _ := troubleOf(Made(pods, f.Records.Stamps), now, soak)
	began, proves := beginning(pods, f.Records.Stamps)
	switch {
	case f.Pods.Access == Unread:
		return Verdict{Retry: true}
	case f.Pods.Access == Forbidden:
		return Verdict{}
	case trouble != "":
		maps.DeleteFunc(concerned, func(_ SourceRef, written time.Time) bool { return began.Before(written) })
	case slices.ContainsFunc(pods, func(pod workload.Pod) bool { return alive(&pod) }):
		return Verdict{}
	case wasHealthy(&muted, soak) || muted.RolledOut.After(muted.Since.Add(afterMuting)):
		return Verdict{} // so it was before that, or it has rolled since
	default:
		trouble = f.Status.Waits + ", and nothing shows that it was healthy before"
		for _, written := range concerned {
			if written.After(began) {
				began = written // nobody knows when it began, but for that
			}
		}
	}
	if len(concerned) == 0 {
		return Verdict{}
	}
	p.adopt(r, f, began, slices.SortedFunc(maps.Keys(concerned), SourceRef.Compare), proves && !r.wasUnhealthy(f.Records), now)
	p.fail(r, trouble, f.Records, now)
	return Verdict{}
}

// wasHealthy reports whether a workload was rolled out, and available for long enough,
// when somebody scaled or paused it.
func wasHealthy(muted *workload.Muted, soak time.Duration) bool {
	return !muted.RolledOut.IsZero() && muted.RolledOut.Before(muted.Since) && !muted.Available.After(muted.Since.Add(-soak))
}

// afterMuting is how long the status of a workload that was scaled to nothing takes
// to say that it is rolled out, as nothing is left to roll.
const afterMuting = 10 * time.Second
