package controller

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// health is what is remembered of a rollout between two looks at it.
type health struct {
	selector string // of its pods
	asked    bool   // for the selector
	best     extent
	// progressed is when it last got further than ever.
	progressed time.Time
	looks      looks
	complete   bool      // it was rolled out once, so its own controller has done its part
	well       time.Time // since when it is rolled out; zero: it is not
	troubled   time.Time // since when every new pod is in trouble; zero: not
	started    time.Time // when a container last started, by its node's clock
	// status is workload.Rollout.StatusHash at the patch, until it changes.
	status uint64
}

// extent is how far a rollout has been at best: the most replicas that were new, and
// available, and the fewest that were missing, as nodes and replicas may go away.
type extent struct{ most, missing int32 }

func noExtent() extent { return extent{missing: math.MaxInt32} }

// grows takes what a status tells, and reports whether that is further than ever.
func (e *extent) grows(status *workload.Rollout) bool {
	was := *e
	e.most, e.missing = max(e.most, status.Updated+status.Available), min(e.missing, status.Missing)
	return *e != was
}

// condition is how a rollout is.
type condition int

const (
	underWay condition = iota
	healthy
	failed
	mute // it cannot tell
)

// A rollout that has failed is looked at less often than one under way.
const (
	soonestLook = 100 * time.Millisecond
	latestLook  = 2 * time.Second
	failedLooks = 5
)

func (l *Limits) lookEvery() time.Duration {
	return min(max(l.Soak/failedLooks, soonestLook), latestLook)
}

// follow looks after the rollout of a workload, if it has one: it ends it when it
// is healthy, and halts its changes when it has failed. It returns how long to
// wait before looking again.
func (c *Controller) follow(ctx context.Context, user ref, s *subject) (time.Duration, error) {
	if c.steps.off() {
		return 0, nil
	}
	unseen := c.steps.unseenBy(user)
	rollout := c.steps.of(user)
	if rollout != nil {
		c.steps.present(rollout, s.uid, c.options.Clock.Now())
	}
	if rollout == nil || rollout.found {
		var err error
		if rollout, err = c.find(ctx, user, s, rollout); err != nil {
			return 0, err
		}
	} else {
		c.steps.testify(user, c.taken(user, s, rollout))
	}
	if rollout == nil {
		c.steps.seen(user, unseen)
		return 0, nil
	}
	rollout.uid = s.uid
	how, why, err := c.examine(ctx, user, s, rollout)
	if err != nil {
		return 0, fmt.Errorf("looking after a rollout: %w", err)
	}
	defer c.steps.seen(user, unseen) // its failure is known by then
	every := c.options.Limits.lookEvery()
	if how == mute && rollout.failed {
		how = failed // nothing says that it would be healthy
	}
	switch how {
	case healthy, mute:
		if c.steps.settle(user, how == healthy, c.carried(user, s)) {
			c.metrics.settled(how)
			klog.FromContext(ctx).Info("Settled", "workload", user.String(), "healthy", how == healthy)
		}
		return 0, nil
	case failed:
		if !rollout.failed {
			ours := !rollout.found || len(rollout.places) > 0
			c.steps.halt(user, why, s.records)
			if !ours {
				break // what somebody else rolls is not ours to tell of
			}
			c.metrics.settled(how)
			klog.FromContext(ctx).Info("Rollout failed", "workload", user.String(), "why", why)
			c.say.event(user, s, checksum.RolloutFailed, "the rollout has failed: "+why+
				". kubectl describe shows more. Put the old content back, or fix it: either way it rolls out by itself. kubectl rollout undo brings back no content")
		}
	case underWay:
	}
	if rollout.failed {
		every *= failedLooks
	}
	if well := rollout.health.well; !well.IsZero() {
		left := c.options.Limits.soak(s) - c.options.Clock.Since(well)
		every = min(every, max(left, soonestLook))
	}
	return every, nil
}

// taken are the sources whose content a rollout of ours has taken, and whose
// changes came to be known afterwards.
func (c *Controller) taken(user ref, s *subject, rollout *rollout) (places []place) {
	for at := range c.steps.unproven(user) {
		if slices.Contains(rollout.rolled, at.source) && c.carries(user, s, at.source) {
			places = append(places, at)
		}
	}
	return places
}

// find looks for a rollout that others have begun with what a change brought, or
// who led before, and has it followed. known is what is followed already.
func (c *Controller) find(ctx context.Context, user ref, s *subject, known *rollout) (*rollout, error) {
	if len(s.records.Stamps) == 0 {
		return known, nil
	}
	over := s.rollout.Phase == workload.RolledOut || s.rollout.Phase == workload.Unreported
	concerned := map[place]time.Time{} // when what changed was written
	for at, found := range c.steps.unproven(user) {
		if over && !found || !c.carries(user, s, at.source) {
			continue // nothing has rolled for it that we do not know of
		}
		written, _ := c.sources.Written(at.namespace, at.source)
		if written.IsZero() { // nobody knows; what is recent may be by it
			written = c.options.Clock.Now().Add(-c.options.Limits.RolloutDeadline)
		}
		if s.rollout.Phase == workload.RolledOut && !s.rollout.Current.IsZero() && s.rollout.Current.Before(written) {
			continue // it has rolled before that was written
		}
		concerned[at] = written
	}
	past := known == nil && s.rollout.Phase == workload.Rolling && c.steps.isPast(user) && c.serves(user, s)
	if len(concerned) == 0 && !past {
		return known, nil
	}
	if s.rollout.Phase == workload.Unreported {
		return c.findMute(ctx, user, s, concerned, known)
	}
	var state health
	if known != nil {
		state = known.health
	}
	pods, _, err := c.podsSeen(ctx, user, s, &state)
	if err != nil {
		return nil, fmt.Errorf("looking for a rollout: %w", err)
	}
	began, proves := beginning(pods, s.records.Stamps)
	if began.IsZero() && s.rollout.Phase == workload.Failed {
		began = s.rollout.FailedAt // not even a pod could be made, or none may be seen
	}
	maps.DeleteFunc(concerned, func(_ place, written time.Time) bool { return began.Before(written) })
	past = past && c.options.Clock.Since(began) < c.options.Limits.RolloutDeadline
	if len(concerned) == 0 && !past {
		return known, nil
	}
	places := slices.Collect(maps.Keys(concerned))
	if known == nil && s.rollout.Phase == workload.RolledOut && c.lasts(made(pods, s.records.Stamps), s) {
		c.steps.prove(places)
		return nil, nil
	}
	rollout := c.steps.board(user, began, places, proves && !c.steps.wasUnwell(user, s.records))
	rollout.health = state
	return rollout, nil
}

// lasts reports whether pods have run for long enough to be healthy.
func (c *Controller) lasts(pods []workload.Pod, s *subject) bool {
	now, soak := c.options.Clock.Now(), c.options.Limits.soak(s)
	for i := range pods {
		if pods[i].Trouble != "" || pods[i].Started.IsZero() || now.Sub(pods[i].Started) < soak {
			return false
		}
	}
	return true
}

// soak is how long a rollout has to stay well.
func (l *Limits) soak(s *subject) time.Duration { return max(l.Soak, s.rollout.MinReady) }

// examine tells how a rollout is, and why it has failed. Its pods are listed only when
// the status asks for it: see looks.
func (c *Controller) examine(ctx context.Context, user ref, s *subject, r *rollout) (condition, string, error) {
	state, limits, status := &r.health, &c.options.Limits, &s.rollout
	now, soak := c.options.Clock.Now(), c.options.Limits.soak(s)
	if state.progressed.IsZero() {
		state.progressed, state.best = r.began, noExtent()
		state.looks.begin(r, limits)
		if state.status == 0 && !r.found { // the answer to the patch was lost
			state.status = status.StatusHash
		}
	}
	// A status that is what it was at the patch may speak of the revision before.
	unchanged := status.StatusHash != 0 && status.StatusHash == state.status
	if !unchanged {
		state.status = 0 // nor does it when it is the same again later
	}
	if unchanged && status.Waits == "" && now.Sub(r.began) < limits.RolloutDeadline {
		return underWay, "", nil
	}
	if unchanged || status.Phase == workload.Unreported {
		state.well = time.Time{}
		return mute, "", nil
	}
	state.hear(status, limits, now)
	if status.Phase == workload.Failed && (status.FailedAt.IsZero() || !status.FailedAt.Before(r.began.Truncate(time.Second))) {
		return failed, "its controller says " + status.Why, nil
	}
	if !r.asksForPods(status, limits, soak, now) {
		return c.stuck(ctx, s, r, nil)
	}
	all, blind, err := c.podsSeen(ctx, user, s, state)
	if err != nil && now.Sub(r.began) < limits.RolloutDeadline {
		return underWay, "", err
	}
	if err != nil {
		c.sayUnseen(user, s, err)
		blind = true
	}
	pods, rolledOut := made(all, s.records.Stamps), status.Phase == workload.RolledOut
	brief := min(soak, limits.CrashDeadline/2)
	trouble, started, up := troubleOf(pods, now, brief)
	if !rolledOut && status.PerNode && len(pods) > 0 && (trouble != "" || now.Sub(state.progressed) >= soak) {
		var down map[string]bool
		if down, rolledOut, err = c.nodesOf(ctx, s, all); err != nil {
			return underWay, "", err
		}
		pods = slices.DeleteFunc(pods, func(pod workload.Pod) bool { return down[pod.Node] })
		trouble, started, up = troubleOf(pods, now, brief)
	}
	state.looks.looked(status, pods, limits, now)
	if trouble == "" {
		state.troubled = time.Time{}
	} else if state.troubled.IsZero() {
		state.troubled = now
		if r.found {
			state.troubled = r.began // nobody has looked until now
		}
	}
	if trouble != "" && now.Sub(state.troubled) >= limits.CrashDeadline {
		return failed, trouble, nil
	}

	if len(pods) == 0 && state.selector != "" && !blind {
		up = false // none has been made yet
	}
	switch {
	case !rolledOut || !up:
		state.well = time.Time{}
	case state.well.IsZero() || !started.Equal(state.started): // it is, or a container has restarted
		state.well = now
	}
	state.started = started
	if !state.well.IsZero() && now.Sub(state.well) >= soak {
		return healthy, "", nil
	}
	state.complete = state.complete || rolledOut
	return c.stuck(ctx, s, r, all)
}

// stuck tells whether a rollout has failed because it makes no progress.
func (c *Controller) stuck(ctx context.Context, s *subject, r *rollout, pods []workload.Pod) (condition, string, error) {
	if s.rollout.Deadline && !r.health.complete {
		return underWay, "", nil // its own controller tells
	}
	stands := c.options.Clock.Now().Sub(r.health.progressed)
	if stands < c.options.Limits.RolloutDeadline || r.failed || !r.health.well.IsZero() {
		return underWay, "", nil
	}
	if s.rollout.PerNode {
		if stalled, err := c.stalledByNodes(ctx, s, pods); err != nil {
			return underWay, "", err
		} else if stalled {
			return mute, "", nil
		}
	}
	return failed, fmt.Sprintf("it has made no progress for %s", stands.Round(time.Second)), nil
}
