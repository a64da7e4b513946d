package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/internal/discovery"
	"github.com/configstamp/configstamp/internal/follow"
	"github.com/configstamp/configstamp/internal/rollout"
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
	var resources []discovery.Resource
	for _, kind := range options.Kinds {
		if kind.Custom {
			var watched customStores
			resources = append(resources, discovery.Resource{GroupVersionResource: kind.GroupVersionResource(), Filled: watched.filled, Watch: func(ctx context.Context, name string) error {
				return c.watchCustom(ctx, config, clients, kind.Named(name), &watched)
			}})
			continue
		}
		client, stores, err := c.stores(config, clients, kind)
		if err != nil {
			return nil, err
		}
		for _, store := range stores {
			c.watches = append(c.watches, watch{kind.String(), client, store})
		}
	}
	c.customs = discovery.New(server, resources...)
	return c, nil
}

// stores makes what fills the index with workloads of a kind.
func (c *Controller) stores(config *rest.Config, clients *restAPI, kind *workload.Kind) (client rest.Interface, stores []*workloads, err error) {
	client, err = follow.NewRaw(config, kind.GroupVersionResource().GroupVersion(), c.condenser(kind))
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for %s: %w", kind, err)
	}
	clients.put(kind, client)
	namespaces := c.options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		stores = append(stores, c.index.of(kind, namespace, c.options.Clock))
	}
	return client, stores, nil
}

// customStores are the watches of a custom kind, nil while there are none.
type customStores struct {
	atomic.Pointer[[]*workloads]
}

func (c *customStores) filled() bool {
	watched := c.Load()
	return watched != nil && !slices.ContainsFunc(*watched, func(store *workloads) bool { return !store.Filled() && !store.Refused() })
}

// watchCustom watches the workloads of a custom kind until ctx ends, and forgets
// them then.
func (c *Controller) watchCustom(ctx context.Context, config *rest.Config, clients *restAPI, kind *workload.Kind, watched *customStores) error {
	client, stores, err := c.stores(config, clients, kind)
	if err != nil {
		return err
	}
	watched.Store(&stores)
	defer watched.Store(nil)
	var running sync.WaitGroup
	for _, store := range stores {
		running.Go(func() { store.Run(ctx, client) })
	}
	running.Wait()
	for _, store := range stores {
		c.index.replace(kind, store.Namespace, nil)
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
		customs:    discovery.New(nil),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Ref](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[workload.Ref]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[workload.Ref]{
				Clock: options.Clock,
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[workload.Ref]{Clock: options.Clock, Queue: queued}),
			})}),
		line:   queued,
		notes:  newNotes(),
		waits:  newWaits(options.Clock.Now),
		others: newOthers(),
	}
	c.index = newIndex(c.wake, c.concern, options.Clock.Now)
	c.index.remade = func(user workload.Ref) {
		c.notes.forget(user)
	}
	options.Limits.Settle = options.Settle
	c.plan.plan = rollout.New(options.Limits, lookup{c})
	c.metrics = newMetrics(registry)
	registry.MustRegister(&gauges{now: options.Clock.Now, leads: c.metrics.leads.Load, index: c.index, queue: queued, plan: &c.plan, waits: c.waits})
	return c
}

// condenser reads workloads of a kind as they arrive. One that cannot be read
// is kept with its fault, so that it never ends the watch of the others.
func (c *Controller) condenser(kind *workload.Kind) func([]byte) (runtime.Object, error) {
	return func(data []byte) (runtime.Object, error) {
		return c.tryRead(kind, data, func() (runtime.Object, error) {
			object, err := kind.Decode(data)
			if err == nil {
				var status workload.Status
				if status, err = kind.Status(data); err == nil {
					return received{workload.Ref{Kind: kind, Namespace: object.Namespace, Name: object.Name}, c.options.newSubject(object, status)}, nil
				}
			}
			if object, headErr := kind.DecodeMetadata(data); headErr == nil {
				return received{workload.Ref{Kind: kind, Namespace: object.Namespace, Name: object.Name}, faulty(object, err)}, nil
			}
			return nil, err
		})
	}
}

// workloads is one watch of workloads, of one kind.
type workloads = follow.Store[received]

// of makes the watch that puts the workloads of a kind, in one namespace or in all (""),
// into the index.
func (x *index) of(kind *workload.Kind, namespace string, clock clock.PassiveClock) *workloads {
	return &workloads{
		Resource: kind.Resource, Namespace: namespace, Clock: clock,
		Event: func(w received, deleted bool) {
			news := deleted
			if deleted {
				x.remove(w.Ref)
			} else {
				news = x.put(w.Ref, w.subject)
			}
			if news {
				x.woken(w.Ref)
			}
		},
		All: func(all []received, _ string) {
			subjects := make(map[workload.Ref]*subject, len(all))
			for _, w := range all {
				subjects[w.Ref] = w.subject
			}
			x.replace(kind, namespace, subjects)
		},
	}
}

// unwatched is for clients of what is read and never watched.
func unwatched([]byte) (runtime.Object, error) {
	return nil, errors.New("decoding: this is read as it comes")
}
