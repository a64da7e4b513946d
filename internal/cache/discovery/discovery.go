// Package discovery watches resources while the API server serves them. Their
// definitions may be installed and removed while we run.
//
// It must not know what is done with them. Start reading at Resources.
package discovery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/refusal"
)

// askEvery is how often the API server is asked what it serves: it has no watch
// for that, as some resources are not made by a CustomResourceDefinition.
const askEvery = 15 * time.Second

// Client returns what the API server serves. NewClient makes one.
type Client interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// Resource is one that the API server may serve.
type Resource struct {
	schema.GroupVersionResource
	// Watch watches it until its context ends, and then deletes what it knew. kind is what
	// the API server calls its objects.
	Watch func(ctx context.Context, kind string) error
	// Filled reports whether all that there is of it is known; nil: not asked.
	Filled func() bool
}

// Resources are watched while they are served. Make it with New.
type Resources struct {
	list   []Resource
	groups []*group

	mu sync.Mutex
	// read has an entry for each resource of which it is known whether the API server serves it: a function that reports
	// whether all its objects were listed.
	read map[schema.GroupVersionResource]func() bool
}

// group holds the resources of one group and version. Each is asked for by itself: one that
// does not answer, such as an aggregated API without a backend, delays no other.
type group struct {
	*Resources
	client  Client
	version schema.GroupVersion
	list    []Resource

	watched map[schema.GroupVersionResource]func() // what ends the watch
	logged  map[schema.GroupVersionResource]string
}

// New makes Resources; nothing is asked until Run.
func New(client Client, list ...Resource) *Resources {
	r := &Resources{list: list, read: map[schema.GroupVersionResource]func() bool{}}
	for _, resource := range list {
		version := resource.GroupVersion()
		i := slices.IndexFunc(r.groups, func(g *group) bool { return g.version == version })
		if i < 0 {
			i = len(r.groups)
			r.groups = append(r.groups, &group{
				Resources: r, client: client, version: version,
				watched: map[schema.GroupVersionResource]func(){}, logged: map[schema.GroupVersionResource]string{},
			})
		}
		r.groups[i].list = append(r.groups[i].list, resource)
	}
	return r
}

// Unread names the resources of which it is not known yet what there is: the API
// server has not said whether it serves them, or they are not filled. It may be
// called at any time, from any goroutine.
func (r *Resources) Unread() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range r.list {
		if filled := r.read[resource.GroupVersionResource]; filled == nil || !filled() {
			names = append(names, resource.GroupResource().String())
		}
	}
	return names
}

// note keeps whether all that there is of a resource is known.
func (r *Resources) note(resource Resource, filled func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[resource.GroupVersionResource] = filled
}

// nothing is the function in Resources.read of a resource that is not served.
func nothing() bool { return true }

// Run looks for resources, and has them watched, until ctx ends. It must be
// called once.
func (r *Resources) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, g := range r.groups {
		running.Go(func() { g.run(ctx) })
	}
	running.Wait()
}

func (g *group) run(ctx context.Context) {
	for {
		g.look(ctx)
		select {
		case <-ctx.Done():
			for _, end := range g.watched {
				end()
			}
			return
		case <-time.After(askEvery):
		}
	}
}

// look starts and ends watches by what is served now. Where the API server does
// not tell, everything stays as it is.
func (g *group) look(ctx context.Context) {
	list, err := g.client.ServerResourcesForGroupVersionWithContext(ctx, g.version.String())
	switch {
	case apierrors.IsNotFound(err):
		list = &metav1.APIResourceList{}
	case err != nil:
		for _, resource := range g.list {
			g.logOnce(ctx, resource, "The API server does not say whether it serves this resource", refusal.Plain(err))
		}
		return
	}
	for _, resource := range g.list {
		g.follow(ctx, resource, list)
	}
}

// follow starts or ends the watch of a resource by what its group serves now.
func (g *group) follow(ctx context.Context, resource Resource, list *metav1.APIResourceList) {
	kind, namespaced := kindOf(list, resource.Resource)
	filled := resource.Filled
	if kind == "" || !namespaced {
		filled = nothing
	}
	g.note(resource, filled)
	end, watched := g.watched[resource.GroupVersionResource]
	switch {
	case kind == "" && watched:
		klog.FromContext(ctx).Info("The cluster no longer serves this resource", "resource", resource.GroupResource().String())
		end()
		delete(g.watched, resource.GroupVersionResource)
	case kind != "" && !namespaced:
		g.logOnce(ctx, resource, "This resource cannot be watched", errors.New("it is not namespaced"))
	case kind != "" && !watched:
		klog.FromContext(ctx).Info("The cluster serves this resource", "resource", resource.GroupResource().String(), "version", resource.Version)
		g.watched[resource.GroupVersionResource] = watch(ctx, resource, kind)
	}
}

// watch begins to watch a resource, and returns what ends that.
func watch(ctx context.Context, resource Resource, kind string) (end func()) {
	watching, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := resource.Watch(watching, kind); err != nil {
			klog.FromContext(ctx).Error(err, "This resource cannot be watched", "resource", resource.GroupResource().String())
		}
	})
	return func() {
		stop()
		running.Wait()
	}
}

// logOnce logs something about a resource once.
func (g *group) logOnce(ctx context.Context, resource Resource, what string, err error) {
	if g.logged[resource.GroupVersionResource] == err.Error() {
		return
	}
	g.logged[resource.GroupVersionResource] = err.Error()
	klog.FromContext(ctx).Info(what, "resource", resource.GroupResource().String(), "reason", err.Error())
}

// kindOf is what the API server calls the objects of a resource, "" when it does
// not serve it.
func kindOf(list *metav1.APIResourceList, resource string) (kind string, namespaced bool) {
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource {
			return list.APIResources[i].Kind, list.APIResources[i].Namespaced
		}
	}
	return "", false
}
