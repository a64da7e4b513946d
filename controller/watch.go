package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/controller/internal/index"
	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/fair"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// New makes a controller that speaks to the API server of config, whose own
// rate limits should be off (QPS -1). Nothing is watched until Run. Custom kinds
// are watched while the server serves them.
func New(config *rest.Config, server discovery.Client, options Options, sources Sources, namespaces Namespaces, keys Keys, recorder Recorder, registry prometheus.Registerer) (*Controller, error) {
	options.Kinds = options.Kinds.Readmitted()
	core, err := follow.Dynamic(config, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("making a client for pods: %w", err)
	}
	clients := &restAPI{core: core, clients: map[*workload.Kind]rest.Interface{}}
	c := newController(options, sources, namespaces, keys, clients, recorder, registry)
	var resources []discovery.Resource
	for _, kind := range options.Kinds {
		if kind.Custom {
			resources = append(resources, c.custom(config, clients, kind))
			continue
		}
		watches, err := c.watchesOf(config, clients, kind)
		if err != nil {
			return nil, err
		}
		c.watches = append(c.watches, watches...)
	}
	c.customs = discovery.New(server, resources...)
	return c, nil
}

func newController(options Options, sources Sources, namespaces Namespaces, keys Keys, api api, recorder Recorder, registry prometheus.Registerer) *Controller {
	queued := fair.New(func(ref workload.Ref) string { return ref.Namespace }, options.Clock.Now)
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
		cycles: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[struct{}](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[struct{}]{Clock: options.Clock}),
		line:     queued,
		throttle: throttle.New(options.Workers),
		notes:    notes{made: map[workload.Ref]*note{}},
		waits:    waiting.New(),
	}
	c.told = &c.waits.Told
	c.index = index.New(c.wake, c.concern, options.Clock.Now)
	c.index.Remade = func(ref workload.Ref) {
		c.notes.forget(ref)
		c.told.Forget(waiting.Of(ref))
	}
	c.options.Limits.Settle = options.Settle
	c.plan = rollout.NewPlanner(c.options.Limits, lookup{c})
	c.metrics = newMetrics(registry)
	registry.MustRegister(gauges{c})
	return c
}

// watch is one of our caches, and the client that fills it.
type watch struct {
	name   string
	client rest.Interface
	store  *workloads
}

// LastProgress is when the watch of workloads that has been silent longest last
// told anything, zero until each has. It leaves out custom kinds, which come and go.
func (c *Controller) LastProgress() time.Time { return follow.Oldest(c.progress()...) }

// LastSign is when the watch of workloads that has shown no life for longest last
// did, zero until each has: see follow.Progress.Sign.
func (c *Controller) LastSign() time.Time { return follow.OldestSign(c.progress()...) }

func (c *Controller) progress() []*follow.Progress {
	all := make([]*follow.Progress, 0, len(c.watches))
	for _, watch := range c.watches {
		all = append(all, &watch.store.Progress)
	}
	return all
}

// Ready says which caches are still to be filled; nil when none is.
func (c *Controller) Ready() error {
	var waiting []string
	for _, watch := range c.watches {
		if watch.store.Pending() {
			waiting = append(waiting, watch.name)
		}
	}
	if !c.sources.HasSynced() {
		waiting = append(waiting, "configmaps and secrets")
	}
	if !c.namespaces.HasSynced() {
		waiting = append(waiting, "namespaces")
	}
	if c.keys.Ring() == nil {
		waiting = append(waiting, "the digest key")
	}
	if len(waiting) > 0 {
		return fmt.Errorf("still to be read: %s", strings.Join(waiting, ", "))
	}
	return nil
}

// customsWithin bounds how long to wait for custom kinds. The API server may not tell of one,
// or not let us read it; then the process leads without it.
const customsWithin = 30 * time.Second

// fill waits until every cache is filled, and says now and then which is not.
// It reports false when ctx ended before.
func (c *Controller) fill(ctx context.Context) bool {
	began, told := c.options.Clock.Now(), 0
	for {
		err := c.Ready()
		if err == nil {
			unread := c.customs.Unread()
			if len(unread) == 0 {
				return true
			}
			if c.options.Clock.Since(began) >= customsWithin {
				klog.FromContext(ctx).Info("Starting without custom kinds that cannot be read yet", "kinds", unread)
				return true
			}
		} else if minutes := int(c.options.Clock.Since(began) / time.Minute); minutes > told {
			told = minutes
			klog.FromContext(ctx).Info("Nothing rolls yet; if this lasts, look for missing rights", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// watchesOf are the watches that fill the index with workloads of a kind.
func (c *Controller) watchesOf(config *rest.Config, clients *restAPI, kind *workload.Kind) (watches []watch, err error) {
	var client rest.Interface
	if gv := kind.GroupVersionResource().GroupVersion(); kind.Custom {
		client, err = follow.Dynamic(config, gv)
	} else {
		client, err = follow.TypedOrMetadata(config, gv, workload.Register)
	}
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", kind, err)
	}
	clients.put(kind, client)
	namespaces := c.options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		watches = append(watches, watch{kind.String(), client, c.fills(kind, namespace)})
	}
	return watches, nil
}

// custom is a custom kind, whose workloads are watched while the server serves them, and
// forgotten then.
func (c *Controller) custom(config *rest.Config, clients *restAPI, kind *workload.Kind) discovery.Resource {
	var watched atomic.Pointer[[]watch] // nil while there are none
	filled := func() bool {
		watches := watched.Load()
		return watches != nil && !slices.ContainsFunc(*watches, func(w watch) bool { return !w.store.Filled() && !w.store.Refused() })
	}
	return discovery.Resource{GroupVersionResource: kind.GroupVersionResource(), Filled: filled, Watch: func(ctx context.Context, name string) error {
		kind := kind.Named(name)
		watches, err := c.watchesOf(config, clients, kind)
		if err != nil {
			return err
		}
		watched.Store(&watches)
		defer watched.Store(nil)
		var running sync.WaitGroup
		for _, watch := range watches {
			running.Go(func() { watch.store.Run(ctx, watch.client) })
		}
		running.Wait()
		for _, watch := range watches {
			c.index.Replace(kind, watch.store.Namespace, nil)
		}
		clients.put(kind, nil)
		return nil
	}}
}

// reads returns what reads workloads of a kind. A workload that cannot be read is kept with its
// fault, so that it never ends the watch of the others.
func (c *Controller) reads(kind *workload.Kind) func(runtime.Object) (received, bool) {
	return func(whole runtime.Object) (received, bool) {
		object, err := meta.Accessor(whole)
		if err != nil {
			return received{}, false
		}
		s, err := c.tryRead(kind, whole)
		if err != nil {
			s = index.Faulty(&workload.Object{Kind: kind, Metadata: workload.MetadataOf(object)}, err)
		}
		return received{workload.Ref{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}, s}, true
	}
}

// Workload is all that is kept of one workload.
type Workload = index.Workload

// received carries a Workload through client-go's Reflector.
type received struct {
	workload.Ref
	*Workload
}

// GetObjectKind implements runtime.Object.
func (r received) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object; what was received never changes.
func (r received) DeepCopyObject() runtime.Object { return r }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (r received) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, ResourceVersion: r.ResourceVersion}
}

// workloads is one watch of workloads, of one kind.
type workloads = follow.Store[received]

// fills makes the watch that puts the workloads of a kind, in one namespace or in all (""),
// into the index.
func (c *Controller) fills(kind *workload.Kind, namespace string) *workloads {
	return &workloads{
		Resource: kind.Resource, Namespace: namespace, Clock: c.options.Clock, Transform: c.reads(kind),
		Event: func(w received, deleted bool) {
			if deleted {
				w.Workload = nil
			}
			c.index.Told(w.Ref, w.Workload)
		},
		All: func(all []received, _ string) {
			listed := make(map[workload.Ref]*Workload, len(all))
			for _, w := range all {
				listed[w.Ref] = w.Workload
			}
			c.index.Replace(kind, namespace, listed)
		},
	}
}

// read reads a workload as the API server writes it.
func (o *Options) read(kind *workload.Kind, body []byte) (*Workload, error) {
	return index.Read(kind, body, o.Dialects, o.Kinds)
}
