package controller

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"github.com/configstamp/configstamp/internal/condense"
	"github.com/configstamp/configstamp/internal/workload"
)

// New makes a controller that speaks to the API server of config, whose own
// rate limits should be off (QPS -1). Nothing is watched until Run.
func New(config *rest.Config, options Options, sources Sources, namespaces Namespaces, keys Keys, recorder events.EventRecorder, registry prometheus.Registerer) (*Controller, error) {
	options.Kinds = options.Kinds.Readmitted()
	if options.Workers < 1 {
		return nil, fmt.Errorf("making the controller: %d workers, want at least one", options.Workers)
	}
	clients := restAPI{}
	pace := newPaced(recorder)
	c := newController(options, sources, namespaces, keys, clients, pace, registry)
	c.tell = pace.run
	watched := options.Namespaces
	if len(watched) == 0 {
		watched = []string{metav1.NamespaceAll}
	}
	for _, kind := range options.Kinds {
		client, err := condense.NewRaw(config, kind.GroupVersionResource().GroupVersion(), c.condenser(kind))
		if err != nil {
			return nil, fmt.Errorf("making a client for %s: %w", kind, err)
		}
		clients[kind] = client
		for _, namespace := range watched {
			c.watch(kind.String(), client, kind.Resource, namespace, &workloadSink{index: c.index, kind: kind, namespace: namespace})
		}
	}
	return c, nil
}

func newController(options Options, sources Sources, namespaces Namespaces, keys Keys, api api, recorder events.EventRecorder, registry prometheus.Registerer) *Controller {
	c := &Controller{
		options:    options,
		sources:    sources,
		namespaces: namespaces,
		keys:       keys,
		api:        api,
		say:        announcer{recorder},
		settle:     newSettling(options.Settle, options.Clock),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[ref](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[ref]{Clock: options.Clock}),
		notes: newNotes(),
		storm: newStorm(),
	}
	c.index = newIndex(c.queue.Add, c.concern)
	c.metrics = newMetrics(registry, c.index.count, c.queue.Len)
	return c
}

// sink is a store that a Reflector fills.
type sink interface {
	cache.ReflectorStore
	filled() bool
}

func (c *Controller) watch(name string, client rest.Interface, resource, namespace string, to sink) {
	c.reflect = append(c.reflect, cache.NewReflectorWithOptions(
		condense.NewListWatch(client, resource, namespace, nil), nil, to,
		cache.ReflectorOptions{Name: "configstamp " + name, TypeDescription: name, Clock: c.options.Clock, Backoff: condense.Backoff()}))
	c.watches = append(c.watches, watch{name, to.filled})
}

// condenser reads workloads of a kind as they arrive. One that cannot be read
// is kept with its fault, so that it never ends the watch of the others.
func (c *Controller) condenser(kind *workload.Kind) func([]byte) (runtime.Object, error) {
	return func(data []byte) (runtime.Object, error) {
		object, err := kind.Decode(data)
		if err == nil {
			return received{ref{kind, object.Namespace, object.Name}, newSubject(object)}, nil
		}
		if object, headErr := kind.DecodeMetadata(data); headErr == nil {
			return received{ref{kind, object.Namespace, object.Name}, faulty(object, err)}, nil
		}
		return nil, err
	}
}

// workloadSink puts workloads into the index.
type workloadSink struct {
	index     *index
	kind      *workload.Kind
	namespace string
	full      atomic.Bool
}

func (s *workloadSink) filled() bool { return s.full.Load() }

// Add implements cache.ReflectorStore.
func (s *workloadSink) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *workloadSink) Update(obj any) error {
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
	for user := range workloads {
		s.index.woken(user)
	}
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (s *workloadSink) Resync() error { return nil }

func errUnexpected(obj any) error {
	return fmt.Errorf("watching: unexpected %T", obj)
}
