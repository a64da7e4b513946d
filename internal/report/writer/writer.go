// Package writer keeps ConfigRollouts as package report computes them, while this process leads. It
// decides nothing: the controller gives it the facts.
//
// Start reading at writer.go (when an object is written), then client.go (what is sent), then watch.go
// (which objects there are), then refused.go (what happens when nothing may be written).
package writer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/fair"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

const (
	// every is how long one object rests between two writes, and perSecond how many objects are written
	// in all. An object whose condition Ready or Stalled turns waits for neither, nor for those that do.
	every     = time.Second
	perSecond = 50
	// compareEvery is how often all objects are compared with the facts, and how long a namespace rests
	// in which writing was refused for good.
	compareEvery = 10 * time.Minute
	// writers is how many objects are written at once.
	writers = 4
	// The backoff of an object that could not be written, or whose facts are not known.
	firstRetry, lastRetry = 200 * time.Millisecond, 10 * time.Second
)

// Options are what a Writer works with.
type Options struct {
	// Facts returns what is true of a source; false while that is not known.
	Facts func(at rollout.SourceRef) (report.Facts, bool)
	// Sources lists the sources that workloads use.
	Sources func() []rollout.SourceRef
	// Serves reports whether this installation may serve a source. Reports on others are none of ours:
	// another installation may write them.
	Serves func(at rollout.SourceRef) bool
	// Namespaces are those to watch; empty: all.
	Namespaces []string
	// Warn emits a Warning that reports are not written.
	Warn     func(text string)
	Clock    clock.WithTicker
	Registry prometheus.Registerer
}

// Writer writes ConfigRollouts. Make it with New.
type Writer struct {
	Options
	client  client
	served  *discovery.Resources
	queue   workqueue.TypedRateLimitingInterface[rollout.SourceRef]
	paced   workqueue.TypedInterface[rollout.SourceRef] // those that have to wait for pace
	pace    flowcontrol.RateLimiter
	refused refused
	writes  *prometheus.CounterVec

	mu      sync.Mutex
	filled  bool                       // objects has all that there are
	objects map[rollout.SourceRef]seen // those that there are
}

// seen is what is known of one object.
type seen struct {
	version   string    // its resourceVersion, as watched
	written   string    // its resourceVersion when it said what facts said
	print     [32]byte  // of these facts
	condition string    // that was true by them
	at        time.Time // when it was last written
}

// New makes a Writer for the API server of config. server lists the resources that it serves.
func New(config *rest.Config, server discovery.Client, options Options) (*Writer, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	queue := func() workqueue.TypedInterface[rollout.SourceRef] {
		line := fair.New(func(at rollout.SourceRef) string { return at.Namespace }, options.Clock.Now)
		return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[rollout.SourceRef]{Clock: options.Clock, Queue: line})
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[rollout.SourceRef]{Clock: options.Clock, Queue: queue()})
	w := &Writer{
		Options: options,
		client:  client,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[rollout.SourceRef](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[rollout.SourceRef]{DelayingQueue: delaying}),
		paced:   queue(),
		pace:    flowcontrol.NewTokenBucketRateLimiter(perSecond, 1),
		refused: refused{rests: map[string]time.Time{}},
		objects: map[rollout.SourceRef]seen{},
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_report_writes_total",
			Help: "Writes of ConfigRollouts: written, refused (none in that namespace for ten minutes), or failed (tried again).",
		}, []string{"result"}),
	}
	for _, result := range []string{written, refusedForGood, failed} {
		w.writes.WithLabelValues(result)
	}
	options.Registry.MustRegister(w.writes)
	w.served = discovery.New(server, w.resource())
	return w, nil
}

// Results of writes, as metric labels.
const (
	written        = "written"
	refusedForGood = "refused"
	failed         = "failed"
)

// Changed has the report on a source compared with the facts soon. It may be called at any time, from any
// goroutine.
func (w *Writer) Changed(at rollout.SourceRef) {
	if report.Reports(at.Source) {
		w.queue.Add(at)
	}
}

// Run writes until ctx ends. It must be called once.
func (w *Writer) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer w.queue.ShutDown()
	defer w.paced.ShutDown()
	running.Go(func() { w.served.Run(ctx) })
	for range writers {
		running.Go(func() {
			for w.next(ctx, w.queue, nil) {
			}
		})
		running.Go(func() {
			for w.next(ctx, w.paced, w.pace) {
			}
		})
	}
	ticker := w.Clock.NewTicker(compareEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			w.compareAll()
		}
	}
}

// compareAll has each object, and each source that is used, compared with the facts.
func (w *Writer) compareAll() {
	for _, at := range w.Sources() {
		w.Changed(at)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.objects {
		w.queue.Add(at)
	}
}

// next compares one object of a queue with the facts, once pace allows it; nil: at once.
func (w *Writer) next(ctx context.Context, from workqueue.TypedInterface[rollout.SourceRef], pace flowcontrol.RateLimiter) bool {
	at, shutdown := from.Get()
	if shutdown {
		return false
	}
	defer from.Done(at)
	if pace != nil && pace.Wait(ctx) != nil {
		return true
	}
	again, err := w.compare(ctx, at, pace != nil)
	switch {
	case err == nil:
		w.queue.Forget(at)
		if again > 0 {
			w.queue.AddAfter(at, again)
		}
	case errors.Is(err, errUnknown):
		w.queue.AddRateLimited(at)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // it ends with its namespace
	case forGood(err):
		w.refuse(ctx, at.Namespace, err)
		w.queue.AddAfter(at, compareEvery)
	case ctx.Err() == nil:
		w.writes.WithLabelValues(failed).Inc()
		klog.FromContext(ctx).V(1).Info("A report could not be written", "namespace", at.Namespace, "source", at.Source.String(), "reason", err.Error())
		w.queue.AddRateLimited(at)
	}
	return true
}

// errUnknown is returned while the facts are not known.
var errUnknown = errors.New("the progress of the workloads is not yet known")

// compare compares one object with the facts. If it says something else, compare writes it, or queues it
// for a paced write. It returns when to compare it again; zero: when something happens.
func (w *Writer) compare(ctx context.Context, at rollout.SourceRef, paced bool) (again time.Duration, err error) {
	now := w.Clock.Now()
	object, exists, filled := w.object(at)
	if !filled || !w.Serves(at) {
		return 0, nil // once there is a definition, all are compared
	}
	if rest := w.refused.until(at.Namespace).Sub(now); rest > 0 {
		return rest, nil
	}
	facts, due, err := w.due(at, &object, exists)
	if err != nil || !due {
		return settlesAgain(&facts), err
	}
	if turns := object.condition != "" && object.condition != facts.State().Condition(); !turns {
		if rest := object.at.Add(every).Sub(now); rest > 0 {
			return rest, nil
		}
		if !paced {
			w.paced.Add(at)
			return 0, nil
		}
	}
	version, wrote, err := w.write(ctx, at, &facts)
	if err != nil {
		return 0, err
	}
	if wrote {
		w.writes.WithLabelValues(written).Inc()
	}
	w.note(at, seen{written: version, print: facts.Print(), condition: facts.State().Condition(), at: now})
	return settlesAgain(&facts), nil
}

// due returns the facts, and whether the object may differ from them or has to be created.
func (w *Writer) due(at rollout.SourceRef, object *seen, exists bool) (facts report.Facts, due bool, err error) {
	facts, known := w.Facts(at)
	switch {
	case !known:
		return report.Facts{}, false, errUnknown
	case !exists:
		return facts, facts.Rolls(), nil
	}
	return facts, object.version != object.written || object.print != facts.Print(), nil
}

// settlesAgain returns how soon a source is compared again that settles, should nothing queue it.
func settlesAgain(facts *report.Facts) time.Duration {
	if facts.State() == report.Settling {
		return 5 * time.Second
	}
	return 0
}

// write writes the status that facts make, unless the object has it already. It returns the version that has
// it; "" if there is to be no object.
func (w *Writer) write(ctx context.Context, at rollout.SourceRef, facts *report.Facts) (version string, wrote bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	source, err := w.client.source(ctx, at)
	if err != nil {
		return "", false, err
	}
	if source.editedAt.After(facts.EditedAt) {
		return "", false, errUnknown // the watch of the source is late
	}
	object, err := w.client.get(ctx, at)
	if err != nil {
		return "", false, err
	}
	switch {
	case object == nil && (!facts.Rolls() || source.uid == ""):
		return "", false, nil
	case object == nil:
		if object, err = w.client.create(ctx, at, source.uid); err != nil {
			return "", false, err
		}
	case orphaned(object, source.uid):
		return "", false, nil // it is about to be deleted with the source that it was for
	}
	is := facts.Status(&object.Status, source.manager, object.Generation, w.Clock.Now())
	if object.Status.Same(&is) {
		return object.ResourceVersion, false, nil
	}
	object.Status = is
	version, err = w.client.update(ctx, object)
	return version, err == nil, err
}

// orphaned reports whether an object was made for a source that is gone, or was made anew.
func orphaned(object *report.ConfigRollout, uid string) bool {
	for _, owner := range object.OwnerReferences {
		if owner.Kind == object.Spec.Source.Kind && owner.Name == object.Spec.Source.Name {
			return string(owner.UID) != uid
		}
	}
	return false
}
