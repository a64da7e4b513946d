package controller

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/condense"
	"github.com/configstamp/configstamp/internal/workload"
)

// New makes a controller that speaks to the API server of config, whose own
// rate limits should be off (QPS -1). Nothing is watched until Run.
func New(config *rest.Config, options Options, sources Sources, keys Keys, recorder events.EventRecorder, registry prometheus.Registerer) (*Controller, error) {
	options.Kinds = options.Kinds.Readmitted()
	if options.Workers < 1 {
		return nil, fmt.Errorf("making the controller: %d workers, want at least one", options.Workers)
	}
	clients := restAPI{}
	pace := newPaced(recorder)
	c := newController(options, sources, keys, clients, pace, registry)
	c.tell = pace.run
	namespaces := options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, kind := range options.Kinds {
		client, err := condense.NewRaw(config, kind.GroupVersionResource().GroupVersion(), c.condenser(kind))
		if err != nil {
			return nil, fmt.Errorf("making a client for %s: %w", kind, err)
		}
		clients[kind] = client
		for _, namespace := range namespaces {
			c.watch(kind.String(), client, kind.Resource, namespace, &workloadSink{index: c.index, kind: kind, namespace: namespace})
		}
	}
	if len(options.Namespaces) > 0 {
		return c, nil // the list is the opt-in
	}
	client, err := condense.NewTyped(config, corev1.SchemeGroupVersion, corev1.AddToScheme, condenseNamespace)
	if err != nil {
		return nil, fmt.Errorf("making a client for namespaces: %w", err)
	}
	c.watch("namespaces", client, "namespaces", metav1.NamespaceAll, &namespaceSink{index: c.index})
	return c, nil
}

func newController(options Options, sources Sources, keys Keys, api api, recorder events.EventRecorder, registry prometheus.Registerer) *Controller {
	c := &Controller{
		options: options,
		sources: sources,
		keys:    keys,
		api:     api,
		say:     announcer{recorder},
		settle:  newSettling(options.Settle, options.Clock),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[ref](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[ref]{Clock: options.Clock}),
		notes: newNotes(),
	}
	c.index = newIndex(c.queue.Add)
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
			return received{ref{kind, object.Namespace, object.Name}, newSubject(object, c.options.Policy)}, nil
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

var errNotNamespace = errors.New("not a Namespace")

// condenseNamespace keeps a namespace's label and name.
func condenseNamespace(obj runtime.Object) (runtime.Object, error) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, errNotNamespace
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: namespace.Name, ResourceVersion: namespace.ResourceVersion}}
	if value, labelled := namespace.Labels[checksum.InjectLabel]; labelled {
		kept.Labels = map[string]string{checksum.InjectLabel: value}
	}
	return kept, nil
}

// namespaceSink notes which namespaces are opted in.
type namespaceSink struct {
	index *index
	full  atomic.Bool
}

func (s *namespaceSink) filled() bool { return s.full.Load() }

// Add implements cache.ReflectorStore.
func (s *namespaceSink) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *namespaceSink) Update(obj any) error {
	namespace, err := meta.Accessor(obj)
	if err != nil {
		return errUnexpected(obj)
	}
	s.index.optIn(namespace.GetName(), namespace.GetLabels()[checksum.InjectLabel] == checksum.InjectEnabled)
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *namespaceSink) Delete(obj any) error {
	namespace, err := meta.Accessor(obj)
	if err != nil {
		return errUnexpected(obj)
	}
	s.index.optIn(namespace.GetName(), false)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *namespaceSink) Replace(list []any, _ string) error {
	listed := make(map[string]bool, len(list))
	for _, obj := range list {
		if err := s.Update(obj); err != nil {
			return err
		}
		namespace, err := meta.Accessor(obj)
		if err != nil {
			return errUnexpected(obj)
		}
		listed[namespace.GetName()] = true
	}
	for _, name := range s.index.optedIn() {
		if !listed[name] {
			s.index.optIn(name, false)
		}
	}
	s.full.Store(true)
	return nil
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (s *namespaceSink) Resync() error { return nil }
