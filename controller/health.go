package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/workload"
)

// health is what is remembered of a rollout between two looks at it.
type health struct {
	selector string // of its pods
	asked    bool   // for the selector
	// best is the most replicas that were new and available, progressed when that
	// last grew.
	best       int32
	progressed time.Time
	complete   bool      // it was rolled out once, so its own controller has done its part
	well       time.Time // since when it is rolled out; zero: it is not
	troubled   time.Time // since when every new pod is in trouble; zero: not
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
func (c *Controller) follow(ctx context.Context, user ref, s *subject, r review) (time.Duration, error) {
	if c.steps.off() {
		return 0, nil
	}
	if len(r.Untrue) == 0 {
		c.steps.came(user)
	}
	rollout := c.steps.of(user)
	if rollout == nil || rollout.found {
		var err error
		if rollout, err = c.find(ctx, user, s, r, rollout); err != nil {
			return 0, err
		}
	}
	c.steps.seen(user)
	if rollout == nil {
		return 0, nil
	}
	how, why, err := c.examine(ctx, user, s, rollout)
	if err != nil {
		return 0, fmt.Errorf("looking after a rollout: %w", err)
	}
	every := c.options.Limits.lookEvery()
	switch how {
	case healthy, mute:
		c.steps.settle(user, how == healthy)
		c.metrics.settled(how)
		klog.FromContext(ctx).Info("Settled", "workload", user.String(), "healthy", how == healthy)
		return 0, nil
	case failed:
		if !rollout.failed {
			c.steps.halt(user, why)
			c.metrics.settled(how)
			klog.FromContext(ctx).Info("Rollout failed", "workload", user.String(), "why", why)
			c.say.event(user, s, corev1.EventTypeWarning, reasonFailed, "the rollout has failed: "+why+
				". Put the old content back, or mend it: either rolls by itself. kubectl rollout undo brings back no content")
		}
	case underWay:
	}
	if rollout.failed {
		every *= failedLooks
	}
	return every, nil
}

// find looks for a rollout that others have begun with what a change brought, or
// who led before, and has it followed. known is what is followed already.
func (c *Controller) find(ctx context.Context, user ref, s *subject, r review, known *rollout) (*rollout, error) {
	if s.rollout.Phase == workload.Unreported || len(s.records.Stamps) == 0 {
		return known, nil
	}
	concerned := map[place]time.Time{} // when what changed was written
	for at, found := range c.steps.unproven(user) {
		if slices.Contains(r.Untrue, at.source) || !slices.Contains(s.sources, at.source) || s.rollout.Phase == workload.RolledOut && !found {
			continue // nothing has rolled for it that we do not know of
		}
		written, _ := c.sources.Written(at.namespace, at.source)
		if written.IsZero() || s.rollout.Phase == workload.RolledOut && !s.rollout.Current.IsZero() && s.rollout.Current.Before(written) {
			continue // it has rolled before that was written
		}
		concerned[at] = written
	}
	past := known == nil && s.rollout.Phase == workload.Rolling && c.steps.isPast(user)
	if len(concerned) == 0 && !past {
		return known, nil
	}
	var state health
	if known != nil {
		state = known.health
	}
	pods, err := c.podsOf(ctx, user, &state)
	if err != nil {
		return nil, fmt.Errorf("looking for a rollout: %w", err)
	}
	began, proves := beginning(pods, s.records.Stamps)
	maps.DeleteFunc(concerned, func(_ place, written time.Time) bool { return began.Before(written) })
	past = past && c.options.Clock.Since(began) < c.options.Limits.RolloutDeadline
	if len(concerned) == 0 && !past {
		return known, nil
	}
	rollout := c.steps.board(user, began, slices.Collect(maps.Keys(concerned)), proves)
	rollout.health = state
	return rollout, nil
}

// beginning is when the newest pod with stamps was created, zero when there is
// none, and whether the workload may have been well before: it was not when pods
// of before are left, and none of them is ready.
func beginning(pods []workload.Pod, stamps map[string]string) (began time.Time, wasWell bool) {
	old, ready := 0, 0
	for i := range pods {
		switch pod := &pods[i]; {
		case !alive(pod):
		case !pod.Carries(stamps):
			if old++; pod.Ready {
				ready++
			}
		case pod.Created.After(began):
			began = pod.Created
		}
	}
	return began, old == 0 || ready > 0
}

// alive reports whether a pod runs, or is to.
func alive(pod *workload.Pod) bool { return !pod.Deleting && !pod.Finished }

// podsOf are the pods of a workload, of every revision.
func (c *Controller) podsOf(ctx context.Context, user ref, state *health) ([]workload.Pod, error) {
	if !state.asked {
		body, err := c.api.get(ctx, user)
		if err != nil {
			return nil, err
		}
		if state.selector, err = user.kind.Selector(body); err != nil {
			return nil, err
		}
		state.asked = true
	}
	if state.selector == "" {
		return nil, nil
	}
	return c.api.pods(ctx, user.namespace, state.selector)
}

// made are the pods that were made from a template with stamps and run, or are to.
func made(pods []workload.Pod, stamps map[string]string) (from []workload.Pod) {
	for i := range pods {
		if alive(&pods[i]) && pods[i].Carries(stamps) {
			from = append(from, pods[i])
		}
	}
	return from
}

// examine tells how a rollout is, and why it has failed.
func (c *Controller) examine(ctx context.Context, user ref, s *subject, r *rollout) (condition, string, error) {
	state, limits, status := &r.health, &c.options.Limits, &s.rollout
	now := c.options.Clock.Now()
	if status.Phase == workload.Unreported {
		return mute, "", nil
	}
	all, err := c.podsOf(ctx, user, state)
	if err != nil {
		return underWay, "", err
	}
	pods := made(all, s.records.Stamps)
	if status.Phase == workload.Failed && (status.FailedAt.IsZero() || !status.FailedAt.Before(r.began.Truncate(time.Second))) {
		return failed, "its controller says " + status.Why, nil
	}
	soak := max(limits.Soak, status.MinReady)
	trouble, started, up := troubleOf(pods, now, soak)
	if trouble == "" {
		state.troubled = time.Time{}
	} else if state.troubled.IsZero() {
		state.troubled = now
	}
	if trouble != "" && now.Sub(state.troubled) >= limits.CrashDeadline {
		return failed, trouble, nil
	}

	rolledOut := status.Phase == workload.RolledOut
	if !rolledOut && status.PerNode && status.Missing > 0 {
		if rolledOut, err = c.lacksNodesAlone(ctx, s, all); err != nil {
			return underWay, "", err
		}
	}
	switch {
	case !rolledOut || !up:
		state.well = time.Time{}
	case state.well.IsZero():
		state.well = now
	}
	if started.After(state.well) && !state.well.IsZero() {
		state.well = started // a container has restarted since
	}
	if !state.well.IsZero() && now.Sub(state.well) >= soak {
		return healthy, "", nil
	}

	state.complete = state.complete || rolledOut
	if state.progressed.IsZero() {
		state.progressed = r.began
	}
	if done := status.Updated + status.Available; done > state.best {
		state.best, state.progressed = done, now
	}
	if status.Deadline && !state.complete {
		return underWay, "", nil // its own controller tells
	}
	if stuck := now.Sub(state.progressed); stuck >= limits.RolloutDeadline {
		return failed, fmt.Sprintf("it has made no progress for %s", stuck.Round(time.Second)), nil
	}
	return underWay, "", nil
}

// troubleOf says what every one of the pods suffers from, "" when one of them does
// not or there are none, when a container last started, and whether all run. A pod
// whose container has restarted is well when it has lasted for the soak.
func troubleOf(pods []workload.Pod, now time.Time, soak time.Duration) (trouble string, started time.Time, up bool) {
	troubled := 0
	up = true
	for i := range pods {
		pod := &pods[i]
		up = up && !pod.Started.IsZero()
		if pod.Started.After(started) {
			started = pod.Started
		}
		switch {
		case pod.Trouble != "":
			trouble = pod.Trouble
		case pod.Restarted && (pod.Started.IsZero() || now.Sub(pod.Started) < soak):
			if trouble == "" {
				trouble = "its container restarts"
			}
		default:
			continue
		}
		troubled++
	}
	if troubled == 0 || troubled < len(pods) {
		return "", started, up
	}
	return fmt.Sprintf("%s (%d of %d new pods)", trouble, troubled, len(pods)), started, up
}

// mostNodes bounds how many nodes are asked for one workload.
const mostNodes = 50

// lacksNodesAlone reports whether all that a rollout lacks is on nodes that are not
// ready.
func (c *Controller) lacksNodesAlone(ctx context.Context, s *subject, pods []workload.Pod) (bool, error) {
	lacking := int32(0)
	asked := map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		if pod.Node == "" || asked[pod.Node] || len(asked) == mostNodes || pod.Ready && !pod.Deleting && pod.Carries(s.records.Stamps) {
			continue
		}
		asked[pod.Node] = true
		ready, err := c.api.nodeReady(ctx, pod.Node)
		if err != nil {
			return false, err
		}
		if !ready {
			lacking++
		}
	}
	return lacking >= s.rollout.Missing, nil
}

// withdrawn tells of pods that started with content that has been taken back
// since.
func (c *Controller) withdrawn(ctx context.Context, user ref, s *subject, was *held) error {
	if !user.kind.Restarts {
		return nil
	}
	until := time.Time{}
	for _, source := range was.sources {
		if written, _ := c.sources.Written(user.namespace, source); written.After(until) {
			until = written
		}
	}
	all, err := c.podsOf(ctx, user, &health{})
	if err != nil {
		return fmt.Errorf("looking for pods that started with withdrawn content: %w", err)
	}
	pods := made(all, s.records.Stamps)
	var names []string
	for i := range pods {
		// The times of pods and sources are whole seconds.
		if started := pods[i].Started; !started.Before(was.since.Truncate(time.Second)) && (until.IsZero() || !started.After(until)) {
			names = append(names, pods[i].Name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		c.say.event(user, s, corev1.EventTypeWarning, reasonWithdrawn, fmt.Sprintf("%s was put back as it was, but %s started in between: "+
			"what it read then it keeps until it is restarted", list(was.sources), joined(names)), was.sources...)
	}
	return nil
}
