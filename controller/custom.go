package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/workload"
)

// discoverEvery is how often the controller asks which custom kinds the cluster
// serves: the API server has no watch for that, as some are not made by a
// CustomResourceDefinition.
const discoverEvery = 15 * time.Second

// Discovery tells what the API server serves (k8s.io/client-go/discovery).
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// customs are the custom kinds, and which of them are watched.
type customs struct {
	kinds     workload.Table
	discovery Discovery
	// start watches a kind until its context ends, and then forgets its workloads.
	start func(context.Context, *workload.Kind) error

	watched map[*workload.Kind]func() // by configured kind: what ends its watch
	told    map[*workload.Kind]string
}

// run looks for custom kinds until ctx ends.
func (c *customs) run(ctx context.Context) {
	c.watched, c.told = map[*workload.Kind]func(){}, map[*workload.Kind]string{}
	for {
		c.look(ctx)
		select {
		case <-ctx.Done():
			for _, end := range c.watched {
				end()
			}
			return
		case <-time.After(discoverEvery):
		}
	}
}

// look starts and ends watches by what is served now. Where the API server does
// not tell, everything stays as it is.
func (c *customs) look(ctx context.Context) {
	lists := map[string]*metav1.APIResourceList{}
	for _, kind := range c.kinds {
		gv := kind.GroupVersionKind().GroupVersion().String()
		list, asked := lists[gv]
		if !asked {
			found, err := c.discovery.ServerResourcesForGroupVersion(gv)
			switch {
			case apierrors.IsNotFound(err):
				found = &metav1.APIResourceList{}
			case err != nil:
				c.tell(ctx, kind, "The API server does not tell whether it serves this kind", err)
				found = nil
			}
			lists[gv], list = found, found
		}
		if list == nil {
			continue
		}
		name, namespaced := served(list, kind)
		end, watched := c.watched[kind]
		switch {
		case name == "" && watched:
			klog.FromContext(ctx).Info("The cluster does not serve this kind any more", "kind", kind.String())
			end()
			delete(c.watched, kind)
		case name != "" && !namespaced:
			c.tell(ctx, kind, "Workloads of this kind cannot be looked after", fmt.Errorf("it is not namespaced"))
		case name != "" && !watched:
			watching, stop := context.WithCancel(ctx)
			var running sync.WaitGroup
			ready := kind.Named(name)
			running.Go(func() {
				if err := c.start(watching, ready); err != nil {
					c.tell(ctx, kind, "Workloads of this kind cannot be watched", err)
				}
			})
			c.watched[kind] = func() {
				stop()
				running.Wait()
			}
			klog.FromContext(ctx).Info("The cluster serves this kind", "kind", kind.String(), "version", kind.Version)
		}
	}
}

// tell logs something about a kind once.
func (c *customs) tell(ctx context.Context, kind *workload.Kind, what string, err error) {
	if c.told[kind] == err.Error() {
		return
	}
	c.told[kind] = err.Error()
	klog.FromContext(ctx).Info(what, "kind", kind.String(), "reason", err.Error())
}

// served is the name that the API server gives to a kind, "" when it does not
// serve it.
func served(list *metav1.APIResourceList, kind *workload.Kind) (name string, namespaced bool) {
	for i := range list.APIResources {
		if list.APIResources[i].Name == kind.Resource {
			return list.APIResources[i].Kind, list.APIResources[i].Namespaced
		}
	}
	return "", false
}
