package controller

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/watchdog"
	"github.com/configstamp/configstamp/internal/workload"
)

// longestLook bounds one look at a workload, or one round of turns, with all its
// requests, each of which has a bound of its own. stuckAfter is when one that is
// still under way hangs by itself: no API server can cause that.
const (
	longestLook = 10 * time.Minute
	stuckAfter  = 15 * time.Minute
)

// errPanicked is what came of a look that panicked.
var errPanicked = errors.New("an internal error of configstamp (a panic): please report it, with the line of the controller's log that says panicked")

// Where a panic was caught, as a metric label.
const (
	inLook  = "look"  // at one workload
	inTurns = "turns" // whose turn it is
	inWatch = "watch" // reading one workload as it arrives
)

// caught, deferred, catches a panic: it counts and logs it, and has something done about
// it. What panicked is not said: it may hold content.
func (c *Controller) caught(ctx context.Context, in, message string, then func(), about ...any) {
	if value := recover(); value != nil {
		c.metrics.panics.WithLabelValues(in).Inc()
		for i := range about { // slog does not ask a value how it wants to be logged
			about[i] = fmt.Sprint(about[i])
		}
		klog.FromContext(ctx).Error(nil, message, append(about, "panic", panics.What(value), "stack", panics.Where())...)
		then()
	}
}

// tryLook looks at one workload. Its panic is its own failure: it is tried again,
// as after any other, and takes nobody's turn meanwhile.
func (c *Controller) tryLook(ctx context.Context, user workload.Ref) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	defer c.caught(ctx, inLook, "A look at a workload panicked", func() {
		var records checksum.Records
		if s := c.index.get(user); s != nil {
			records = s.records
		}
		c.planned(func(p *rollout.Plan) { p.Panicked(user, records, c.options.Clock.Now()) })
		wait, err = 0, errPanicked
	}, "workload", user)
	return c.sync(ctx, user)
}

// tryTurns finds out whose turn it is. After a panic that is done again; those whose
// turn has come are not forgotten.
func (c *Controller) tryTurns(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	defer c.caught(ctx, inTurns, "The planner of turns panicked", func() {
		c.planned(func(p *rollout.Plan) {
			for _, user := range p.Granted() {
				c.queue.Add(user)
			}
		})
		err = errPanicked
	})
	c.takeTurns(ctx)
	return nil
}

// tryRead reads a workload as it arrives.
func (c *Controller) tryRead(kind *workload.Kind, data []byte) (object *workload.Object, s *subject, err error) {
	defer c.caught(context.Background(), inWatch, "Reading a workload panicked", func() { err = errPanicked }, "kind", kind)
	return c.options.read(kind, data)
}

// vitals tell whether the queue moves.
type vitals struct {
	looks watchdog.Work
	ended atomic.Int32 // workers that have ended before they were told to
}

// Healthy says why the process should be started anew, nil when that would not help.
// That the API server is away, or slow, is no reason.
func (c *Controller) Healthy(now time.Time) error {
	began, last, waits := c.vitals.looks.Oldest(), c.vitals.looks.Latest(), c.line.oldest()
	switch {
	case c.vitals.ended.Load() > 0:
		return fmt.Errorf("%d of %d workers have ended", c.vitals.ended.Load(), c.options.Workers)
	case !began.IsZero() && now.Sub(began) > stuckAfter:
		return fmt.Errorf("a look at a workload has been under way for %s", now.Sub(began).Round(time.Second))
	case c.leads.Load() && !waits.IsZero() && now.Sub(waits) > stuckAfter && now.Sub(last) > stuckAfter:
		return fmt.Errorf("nothing has been taken from the queue for %s, though something waits", now.Sub(waits).Round(time.Second))
	}
	return nil
}
