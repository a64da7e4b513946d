// Package controller is the sidecar: it has the webhook look again, by an empty patch, at
// each workload whose sources have changed.
//
// It is level-triggered. Whatever wakes it up (a source, a workload, a Namespace, a start,
// a retry), it compares what a workload has on record with what the sources hold, by the
// rules of package checksum, and acts on the difference. So it needs no event to be seen.
//
// It never writes a template, never deletes anything, and does not know the webhook: it
// only checks that the answer is true. Package internal/rollout decides when a workload
// rolls.
//
// Read it in this order:
//   - What it works on: controller.go (who leads, the queue) and watch.go (the caches, which
//     fill package controller/internal/index: the workloads, and which of them use a source).
//   - What it does: look.go (one workload: observe, decide, report, act), with review.go (what
//     is true now), pods.go (what the planner wants to be read), readmit.go (rolls), record.go
//     (recordings), api.go (all requests) and notes.go (what is remembered of it); and cycle.go
//     (the planner: whose turn has come).
//   - What it tells: held.go (of what a workload waits for), news.go (what becomes of changes), tell.go
//     (events), findings.go (of Namespaces and sources), metrics.go; and report.go (the facts of which
//     package internal/report makes ConfigRollouts).
//   - What it foresees of an edit that somebody is about to make: foresee.go.
package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/index"
	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/fair"
	"github.com/configstamp/configstamp/internal/lease"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/revisions"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/watchdog"
	"github.com/configstamp/configstamp/internal/workload"
)

// Sources is the store of digests.
type Sources interface {
	// Content is what memory holds of a source, nil when it does not exist.
	Content(namespace string, source checksum.Source) *checksum.Content
	// Written is when a source's data was last written, and when the source
	// was created; zero when that is not known.
	Written(namespace string, source checksum.Source) (written, created time.Time)
	// Version is a source's metadata.resourceVersion, "" when that is not known.
	Version(namespace string, source checksum.Source) string
	// Names lists the sources of a kind.
	Names(namespace string, kind checksum.Kind) []string
	// Namespaces lists those in which there is a source of a kind and name, sorted.
	Namespaces(of checksum.Source) []string
	// Findings calls yield with each source of which people should know something.
	Findings(yield func(namespace string, source checksum.Source, found []checksum.Finding))
	// Confirm asks the API server whether a source that memory lacks is there all the same,
	// as a Secret that is not watched. Content says so from then on.
	Confirm(ctx context.Context, namespace string, source checksum.Source) error
	// MadeAnew reports whether a source has the name of one that was immutable and held
	// something else, so that nodes may never read it.
	MadeAnew(namespace string, source checksum.Source) bool
	HasSynced() bool
}

// Namespaces tells what Namespaces say of the workloads in them.
type Namespaces interface {
	// Get is what is known of a Namespace, from memory.
	Get(namespace string) checksum.Namespace
	// Each calls yield, which must not use it, with each Namespace that is known.
	Each(yield func(name string, says checksum.Namespace))
	HasSynced() bool
}

// Keys gives the installation's keys.
type Keys interface {
	// Ring is nil while no key is stored.
	Ring() *checksum.Ring
	// Refresh looks live, in a bounded time, for a key that the ring lacks.
	// An error tells that the key may well exist.
	Refresh(ctx context.Context, keyID string) (found bool, err error)
}

// Options are what a user can set.
type Options struct {
	Kinds workload.Table
	// Policy is the cluster's, beneath those of Namespaces and workloads.
	Policy checksum.Policy
	// Dialects are those of other products whose annotations count, and opt in.
	Dialects []checksum.Dialect
	// Namespaces restricts the controller to these; empty: all namespaces.
	Namespaces []string
	// Excluded namespaces are never served, whatever their label says.
	Excluded []string
	// SnapshotOf gives what a snapshot of ours of a source holds, by memory, nil when that does
	// not know; nil: the process does not pin.
	SnapshotOf func(namespace, name string, of checksum.Source) *checksum.Content
	// Revisions reads those of workloads; nil: nothing is known of them.
	Revisions *revisions.Client
	// Settle is how long a source must have rested before a roll; several
	// edits within ten times that make one.
	Settle time.Duration
	// Limits bound how much rolls at once.
	Limits rollout.Limits
	// Workers is how many workloads are handled at once, at least one.
	Workers int
	// Lease is the lock of the leader; nil: lead without one.
	Lease *lease.Lock
	// Clock is real, but in tests.
	Clock clock.WithTicker
}

// Backoff of one workload: it never gives up, and does not wait in a worker.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = time.Minute
)

// Controller is the sidecar. Make it with New.
type Controller struct {
	options      Options
	sources      Sources
	namespaces   Namespaces
	keys         Keys
	api          api
	recorder     Recorder
	metrics      *Metrics
	index        *index.Index
	planLock     sync.Mutex
	plan         *rollout.Planner // under planLock
	cycled       time.Time        // when it last did a cycle, under planLock
	throttleLock sync.Mutex
	throttle     *throttle.Throttle // of re-admissions, under throttleLock
	queue        workqueue.TypedRateLimitingInterface[workload.Ref]
	cycles       workqueue.TypedRateLimitingInterface[struct{}] // the one that is due
	line         *fair.Queue[workload.Ref]                      // what waits in the queue
	looks        watchdog.Work                                  // under way
	ended        atomic.Int32                                   // workers that have ended before they were told to
	watches      []watch
	customs      *discovery.Resources
	full         atomic.Bool // the caches
	leads        atomic.Bool // workloads that wake up are for us
	notes        notes
	told         *waiting.Told
	waits        *waiting.Waits
	leading      []func(context.Context)
	outcomes     outcomes
}

// Edited tells the controller that a source has other content than before, which was nil
// when it did not exist. It may be called at any time, from any goroutine.
func (c *Controller) Edited(namespace string, source checksum.Source, was *checksum.Content) {
	at, is := rollout.SourceRef{Namespace: namespace, Source: source}, c.sources.Content(namespace, source)
	if !was.SameEntries(is) {
		c.told.Over(waiting.OfSource(at), reason.ChangeHalted, "")
	}
	c.plans(func(p *rollout.Planner) { p.Edited(at, was, is, c.options.Clock.Now()) })
	if c.outcomes.edited(at, was, is, c.options.Settle, c.options.Clock.Now()); c.leads.Load() {
		c.outcomes.report(namespace, source)
	}
	for _, ref := range c.index.Using(namespace, source) {
		c.wake(ref) // a recording needs no turn
	}
}

// WhileLeading has something run while this process leads. It must be called before Run.
func (c *Controller) WhileLeading(run func(context.Context)) { c.leading = append(c.leading, run) }

// NamespaceChanged tells the controller that a Namespace says something else than
// before. It may be called at any time, from any goroutine.
func (c *Controller) NamespaceChanged(namespace string) { c.index.Reconsider(namespace) }

// Reconsider has every workload looked at again, as after a change of the key ring.
func (c *Controller) Reconsider() {
	for _, ref := range c.index.All() {
		c.wake(ref)
	}
}

// wake queues a workload. A process that does not lead queues nothing: a new leader looks
// at every workload.
func (c *Controller) wake(ref workload.Ref) {
	if c.leads.Load() {
		c.queue.Add(ref)
	}
}

// Run watches, waits for the lease and works until ctx ends. It gives the
// lease back when it ends, and returns an error when the lease is lost, which ends the
// process, so that the next leader is the only one.
func (c *Controller) Run(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, watch := range c.watches {
		watches.Go(func() { watch.store.Run(ctx, watch.client) })
	}
	watches.Go(func() { c.customs.Run(ctx) })
	if !c.fill(ctx) {
		return nil // told to stop before
	}
	c.index.Refresh() // workloads may have come before the policy of their Namespace
	c.full.Store(true)
	klog.FromContext(ctx).Info("Caches are full", "workloads", c.index.Len())
	if c.options.Lease == nil {
		c.work(ctx)
		return nil
	}
	err := c.options.Lease.Hold(ctx, c.work)
	c.metrics.leads.Store(false)
	return err
}

// work handles workloads until ctx ends. It begins with all of them, which finds what has
// changed since the last leader ended.
func (c *Controller) work(ctx context.Context) {
	klog.FromContext(ctx).Info("Leading")
	c.lead()
	c.metrics.leads.Store(true) // what is to do is in the queue by now
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	defer context.AfterFunc(ctx, c.cycles.ShutDown)()
	var workers sync.WaitGroup
	worker := func(next func(context.Context) bool) {
		workers.Go(func() {
			defer func() {
				if ctx.Err() == nil {
					c.ended.Add(1)
				}
			}()
			for next(ctx) {
			}
		})
	}
	for range c.options.Workers {
		worker(c.next)
	}
	worker(c.nextCycle)
	told := remarks{}
	workers.Go(func() {
		c.every(ctx, findingsEvery, func() {
			c.tellNewFindings(ctx, told)
			c.tellStale(ctx)
		})
	})
	for _, run := range c.leading {
		workers.Go(func() { run(ctx) })
	}
	workers.Wait()
}

// lead has this process lead from now on, and queues all workloads.
func (c *Controller) lead() {
	c.leads.Store(true)
	c.outcomes.lead(c.options.Clock.Now())
	c.planned(func(p *rollout.Planner) { p.Lead(c.index.All(), c.options.Clock.Now()) })
	c.Reconsider()
}

// every has something done now and then, until ctx ends.
func (c *Controller) every(ctx context.Context, period time.Duration, do func()) {
	ticker := c.options.Clock.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			do()
		}
	}
}

// next handles one workload. This is the one place that puts it back.
func (c *Controller) next(ctx context.Context) bool {
	ref, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(ref)
	defer c.looks.Begin(c.options.Clock.Now())()
	wait, err := c.tryLook(ctx, ref)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("To be tried again", "workload", ref.String(), "tries", c.queue.NumRequeues(ref)+1, "reason", err.Error())
			c.reportFailure(ref, err)
		}
		c.queue.AddRateLimited(ref)
		c.queue.AddAfter(ref, againWithin(err)) // the sooner counts
	case wait > 0:
		c.queue.AddAfter(ref, wait)
		fallthrough
	default:
		if !c.again(ref) { // else it has failed, and waits for its turn
			c.queue.Forget(ref)
			c.told.Over(waiting.Of(ref), reason.Retry, "")
		}
	}
	return true
}

// longestLook bounds one look at a workload, or one cycle of the planner, with all its
// requests; each request has its own bound too. A look that takes longer than stuckAfter
// hangs by a fault of ours: no API server can cause that.
const (
	longestLook = 10 * time.Minute
	stuckAfter  = 15 * time.Minute
)

// errPanicked is what came of a look that panicked.
var errPanicked = errors.New("an internal error of configstamp (a panic): please report it, with the line of the controller's log that says panicked")

// Where a panic was caught, as a metric label.
const (
	inLook     = "look"     // at one workload
	inTurns    = "turns"    // whose turn it is
	inWatch    = "watch"    // reading one workload as it arrives
	inFindings = "findings" // telling of Namespaces and sources, and of old content
	inReport   = "report"   // computing the report on a source
)

// caught, deferred, catches a panic: it counts and logs it, and has something done about
// it. What panicked is not said: it may hold content.
func (c *Controller) caught(log klog.Logger, in, message string, then func(), about ...any) {
	if value := recover(); value != nil {
		c.metrics.panics.WithLabelValues(in).Inc()
		for i := range about { // slog does not ask a value how it wants to be logged
			about[i] = fmt.Sprint(about[i])
		}
		log.Error(nil, message, append(about, "panic", panics.What(value), "stack", panics.Where())...)
		then()
	}
}

// tryLook looks at one workload. Its panic is its own failure: it is tried again,
// as after any other error, and holds no slot meanwhile.
func (c *Controller) tryLook(ctx context.Context, ref workload.Ref) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	defer c.caught(klog.FromContext(ctx), inLook, "A look at a workload panicked", func() {
		c.plans(func(p *rollout.Planner) { p.Panicked(ref, c.options.Clock.Now()) })
		wait, err = 0, errPanicked
	}, "workload", ref)
	return c.sync(ctx, ref)
}

// tryRead reads a workload as a watch brings it.
func (c *Controller) tryRead(kind *workload.Kind, whole runtime.Object) (s *Workload, err error) {
	defer c.caught(klog.Background(), inWatch, "Reading a workload panicked", func() { s, err = nil, errPanicked }, "kind", kind)
	if custom, ok := whole.(*unstructured.Unstructured); ok {
		body, err := custom.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("reading a %s: it does not have the form of an object", kind.Name)
		}
		return c.options.read(kind, body)
	}
	object, status, err := kind.Of(whole)
	if err != nil {
		return nil, err
	}
	return index.Of(object, status, c.options.Dialects, c.options.Kinds), nil
}

// Healthy says why the process should be restarted, nil when a restart would not help, as
// when the API server is away or slow.
func (c *Controller) Healthy(now time.Time) error {
	began, last, waits := c.looks.Oldest(), c.looks.Latest(), c.line.Oldest()
	switch {
	case c.ended.Load() > 0:
		return fmt.Errorf("%d of %d workers have ended", c.ended.Load(), c.options.Workers+1)
	case !began.IsZero() && now.Sub(began) > stuckAfter:
		return fmt.Errorf("a reconcile of a workload has been under way for %s", now.Sub(began).Round(time.Second))
	case c.leads.Load() && !waits.IsZero() && now.Sub(waits) > stuckAfter && now.Sub(last) > stuckAfter:
		return fmt.Errorf("nothing has been taken from the queue for %s, though something waits", now.Sub(waits).Round(time.Second))
	}
	return nil
}
