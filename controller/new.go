package controller

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

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

func newController(options Options, sources Sources, namespaces Namespaces, keys Keys, api api, recorder events.EventRecorder, registry prometheus.Registerer) *Controller {
	queued := newFair(options.Clock.Now)
	c := &Controller{
		options:    options,
		sources:    sources,
		namespaces: namespaces,
		keys:       keys,
		api:        api,
		recorder:   recorder,
		customs:    discovery.New(nil),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[workload.Ref](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[workload.Ref]{DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[workload.Ref]{
				Clock: options.Clock,
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[workload.Ref]{Clock: options.Clock, Queue: queued}),
			})}),
		line:   queued,
		told:   told{texts: map[any]map[string]string{}},
		notes:  notes{made: map[workload.Ref]*note{}},
		waits:  newWaits(options.Clock.Now),
		others: newOthers(),
	}
	c.index = newIndex(c.wake, c.concern, options.Clock.Now)
	c.index.remade = func(user workload.Ref) {
		c.notes.forget(user)
		c.told.forget(user)
	}
	options.Limits.Settle = options.Settle
	c.plan.plan = rollout.New(options.Limits, lookup{c})
	c.metrics = newMetrics(registry)
	registry.MustRegister(&gauges{now: options.Clock.Now, leads: c.metrics.leads.Load, index: c.index, queue: queued, plan: &c.plan, waits: c.waits})
	return c
}
