package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/internal/discovery"
	"github.com/configstamp/configstamp/internal/follow"
	"github.com/configstamp/configstamp/internal/workload"
)

// New makes a controller that speaks to the API server of config, whose own
// rate limits should be off (QPS -1). Nothing is watched until Run. Custom kinds
// are watched while the server serves them.
func New(config *rest.Config, server discovery.Client, options Options, sources Sources, namespaces Namespaces, keys Keys, recorder events.EventRecorder, registry prometheus.Registerer) (*Controller, error) {
	options.Kinds = options.Kinds.Readmitted()
	if options.Workers < 1 {
		return nil, fmt.Errorf("making the controller: %d workers, want at least one", options.Workers)
	}
	core, err := follow.NewRaw(config, corev1.SchemeGroupVersion, unwatched)
	if err != nil {
		return nil, fmt.Errorf("making a client for pods: %w", err)
	}
	clients := &restAPI{core: core, clients: map[*workload.Kind]rest.Interface{}}
	c := newController(options, sources, namespaces, keys, clients, recorder, registry)
	var customs []discovery.Resource
	for _, kind := range options.Kinds {
		if kind.Custom {
			var watched customSinks
			customs = append(customs, discovery.Resource{GroupVersionResource: kind.GroupVersionResource(), Filled: watched.filled, Watch: func(ctx context.Context, name string) error {
				return c.watchCustom(ctx, config, clients, kind.Named(name), &watched)
			}})
			continue
		}
		reflectors, sinks, err := c.reflectors(config, clients, kind)
		if err != nil {
			return nil, err
		}
		c.reflect = append(c.reflect, reflectors...)
		for _, sink := range sinks {
			c.watches = append(c.watches, watch{kind.String(), sink.filled, &sink.progress})
		}
	}
	c.customs = discovery.New(server, customs...)
	return c, nil
}

// reflectors are what fills the index with workloads of a kind.
func (c *Controller) reflectors(config *rest.Config, clients *restAPI, kind *workload.Kind) (reflectors []*cache.Reflector, sinks []*workloadSink, err error) {
	client, err := follow.NewRaw(config, kind.GroupVersionResource().GroupVersion(), c.condenser(kind))
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for %s: %w", kind, err)
	}
	clients.put(kind, client)
	namespaces := c.options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		sink := &workloadSink{index: c.index, kind: kind, namespace: namespace, clock: c.options.Clock}
		sinks = append(sinks, sink)
		reflectors = append(reflectors, cache.NewReflectorWithOptions(
			sink.refused.Of(follow.NewListWatch(sink.progress.Asking(client, c.options.Clock), kind.Resource, namespace, nil)), nil, sink,
			cache.ReflectorOptions{Name: "configstamp " + kind.String(), TypeDescription: kind.String(), Clock: c.options.Clock, Backoff: follow.Backoff()}))
	}
	return reflectors, sinks, nil
}

// customSinks are those of a custom kind, while it is watched.
type customSinks struct {
	atomic.Pointer[[]*workloadSink]
}

func (s *customSinks) filled() bool {
	watched := s.Load()
	return watched != nil && !slices.ContainsFunc(*watched, func(sink *workloadSink) bool { return !sink.filled() && !sink.refused.Last() })
}

// watchCustom watches the workloads of a custom kind until ctx ends, and forgets
// them then.
func (c *Controller) watchCustom(ctx context.Context, config *rest.Config, clients *restAPI, kind *workload.Kind, watched *customSinks) error {
	reflectors, sinks, err := c.reflectors(config, clients, kind)
	if err != nil {
		return err
	}
	watched.Store(&sinks)
	defer watched.Store(nil)
	var running sync.WaitGroup
	for _, reflector := range reflectors {
		running.Go(func() { reflector.RunWithContext(ctx) })
	}
	running.Wait()
	for _, sink := range sinks {
		c.index.replace(kind, sink.namespace, nil)
	}
	clients.put(kind, nil)
	return nil
}

func newController(options Options, sources Sources, namespaces Namespaces, keys Keys, api api, recorder events.EventRecorder, registry prometheus.Registerer) *Controller {
	queued := newFair(options.Clock.Now)
	c := &Controller{
		options:    options,
		sources:    sources,
		namespaces: namespaces,
		keys:       keys,
		api:        plainAPI{api},
		say:        announcer{recorder},
		settle:     newSettling(options.Settle, options.Clock),
		customs:    discovery.New(nil),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[ref](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[ref]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ref]{
				Clock: options.Clock,
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ref]{Clock: options.Clock, Queue: queued}),
			})}),
		line:   queued,
		notes:  newNotes(),
		storm:  newStorm(longestSettle * options.Settle),
		steps:  newSteps(options.Limits),
		waits:  newWaits(options.Clock.Now),
		lacks:  newLacks(),
		others: newOthers(),
	}
	c.index = newIndex(c.wake, c.concern, options.Clock.Now)
	c.index.remade = func(user ref) {
		c.notes.forget(user)
		c.storm.forget(user)
	}
	c.steps.users = func(at place) []ref { return c.index.users(at.namespace, at.source) }
	c.steps.content, c.steps.resumed = c.contentOf, c.resumed
	c.steps.look, c.steps.call = c.index.woken, func(wait time.Duration) { c.queue.AddAfter(ref{}, wait) }
	c.metrics = newMetrics(registry)
	registry.MustRegister(&gauges{now: options.Clock.Now, leads: c.metrics.leads.Load, index: c.index, queue: queued, steps: c.steps, waits: c.waits})
	return c
}

// condenser reads workloads of a kind as they arrive. One that cannot be read
// is kept with its fault, so that it never ends the watch of the others.
func (c *Controller) condenser(kind *workload.Kind) func([]byte) (runtime.Object, error) {
	return func(data []byte) (runtime.Object, error) {
		return c.tryRead(kind, data, func() (runtime.Object, error) {
			object, err := kind.Decode(data)
			if err == nil {
				var rollout workload.Rollout
				if rollout, err = kind.Rollout(data); err == nil {
					return received{ref{kind, object.Namespace, object.Name}, c.options.newSubject(object, rollout)}, nil
				}
			}
			if object, headErr := kind.DecodeMetadata(data); headErr == nil {
				return received{ref{kind, object.Namespace, object.Name}, faulty(object, err)}, nil
			}
			return nil, err
		})
	}
}

// workloadSink puts workloads into the index.
type workloadSink struct {
	index     *index
	kind      *workload.Kind
	namespace string
	clock     clock.PassiveClock
	full      atomic.Bool
	progress  follow.Progress
	refused   follow.Refused
}

// filled reports whether nobody has to wait for it: a given namespace that the API
// server refuses, as it does one that is gone, is waited for by nobody.
func (s *workloadSink) filled() bool {
	return s.full.Load() || s.namespace != metav1.NamespaceAll && s.refused.Last()
}

// Add implements cache.ReflectorStore.
func (s *workloadSink) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *workloadSink) Update(obj any) error {
	s.progress.Made(s.clock.Now())
	workload, ok := obj.(received)
	if !ok {
		return errUnexpected(obj)
	}
	if s.index.put(workload.ref, workload.subject) {
		s.index.woken(workload.ref)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *workloadSink) Delete(obj any) error {
	s.progress.Made(s.clock.Now())
	workload, ok := obj.(received)
	if !ok {
		return errUnexpected(obj)
	}
	s.index.remove(workload.ref)
	s.index.woken(workload.ref)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *workloadSink) Replace(list []any, _ string) error {
	s.progress.Made(s.clock.Now())
	workloads := make(map[ref]*subject, len(list))
	for _, obj := range list {
		workload, ok := obj.(received)
		if !ok {
			return errUnexpected(obj)
		}
		workloads[workload.ref] = workload.subject
	}
	s.index.replace(s.kind, s.namespace, workloads)
	s.full.Store(true)
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *workloadSink) Bookmark(string) error {
	s.progress.Made(s.clock.Now())
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (s *workloadSink) Resync() error { return nil }

func errUnexpected(obj any) error {
	return fmt.Errorf("watching: unexpected %T", obj)
}

// unwatched is for clients of what is read and never watched.
func unwatched([]byte) (runtime.Object, error) {
	return nil, errors.New("decoding: this is read as it comes")
}
