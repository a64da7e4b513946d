package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// looks decides when the pods of a rollout are listed. Its status costs nothing, as a
// watch brings it; its pods may be fifty pages. So they are listed only
//   - when the status says that the rollout is done, and again after the soak;
//   - when the status says so no longer;
//   - when the status makes no progress for a moment, then for twice as long, and so on;
//   - while all new pods are in trouble;
//   - when its own controller calls it failed, or before it fails without progress;
//   - at once, when the rollout was begun by others, or under another leader.
type looks struct {
	done bool // what the status said last
	// since is when the status last made progress, or began or ceased to say that the
	// rollout is done. Pods are listed when nothing more has come of it for patience.
	since    time.Time
	patience time.Duration
	last     time.Time       // when pods were last listed; zero: never
	status   workload.Status // as it was then
	sound    bool            // a new pod was ready then
}

// The crash deadline has room for this many lists of pods before a crash is suspected,
// and for this many while there is one.
const (
	looksBefore = 6
	looksDuring = 3
)

// moment is how long a rollout may make no progress before its pods are listed first,
// and how long they are not listed again, whatever the status does.
func (l *Limits) moment() time.Duration {
	return max(min(l.CrashDeadline/looksBefore, l.Soak), l.lookEvery())
}

func (l *looks) begin(t *trial, limits *Limits) {
	if l.since = t.began; !t.found {
		l.patience = limits.moment()
	}
}

// hear takes what the status says now.
func (h *health) hear(status *workload.Status, level int32, limits *Limits, now time.Time) {
	l, done := &h.looks, status.Phase == workload.RolledOut
	progress := h.best.Grows(status)
	// A workload that has its level and no old pod is being scaled: that does not end its soak.
	scales := level > 0 && status.Available >= max(1, min(level, status.Wanted)) && !status.Old &&
		status.Phase != workload.Suspended && l.status.Phase != workload.Suspended
	if progress {
		h.progressed, l.since = now, now
	}
	switch {
	case done != l.done:
		if l.done, l.since, l.patience = done, now, 0; !scales {
			h.well = time.Time{} // that at a pause does not count for the rest
		}
	case !l.sound && (progress || status.Missing < l.status.Missing): // the latter when it recovers what it had
		l.patience = min(l.patience, limits.moment())
	}
	worse := status.Missing > l.status.Missing || status.Old || status.Phase == workload.Suspended
	if !done && worse && !scales && *status != l.status { // else what it lacks does not count
		h.well = time.Time{}
	}
}

// asksForPods reports whether pods have to be listed now.
func (t *trial) asksForPods(status *workload.Status, limits *Limits, now time.Time) bool {
	h, l := &t.health, &t.health.looks
	rested, moment := now.Sub(l.last), limits.moment()
	switch {
	case t.failed && status.Phase == workload.Suspended: // its pods prove nothing at a pause
		return rested >= failedLooks*moment
	case !h.well.IsZero() && !t.standing:
		return now.Sub(h.well) >= h.soak
	case !t.failed && (status.PerNode || status.MinReady > 0) && now.Sub(h.progressed) >= limits.RolloutDeadline:
		return true // is it the nodes, or minReadySeconds?
	case t.failed && rested < failedLooks*moment, rested < moment:
		return false
	case !t.failed && !h.troubled.IsZero():
		return rested >= limits.CrashDeadline/looksDuring || now.Sub(h.troubled) >= limits.CrashDeadline
	}
	return now.Sub(l.since) >= l.patience
}

// looked notes that new pods were listed.
func (l *looks) looked(status *workload.Status, pods []workload.Pod, limits *Limits, now time.Time) {
	if l.last = now; !status.Behind {
		l.status = *status
	}
	l.sound = slices.ContainsFunc(pods, func(pod workload.Pod) bool { return pod.Ready })
	l.patience = max(limits.moment(), 2*now.Sub(l.since))
}
