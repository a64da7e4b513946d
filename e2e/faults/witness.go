package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// kinds are what the Witness watches and users write, by kubectl's name.
func kinds() map[string]schema.GroupVersionResource {
	apps, core := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Version: "v1"}
	return map[string]schema.GroupVersionResource{
		"deployment":  apps.WithResource("deployments"),
		"statefulset": apps.WithResource("statefulsets"),
		"daemonset":   apps.WithResource("daemonsets"),
		"replicaset":  apps.WithResource("replicasets"),
		"cronjob":     {Group: "batch", Version: "v1", Resource: "cronjobs"},
		"configmap":   core.WithResource("configmaps"),
		"secret":      core.WithResource("secrets"),
		"namespace":   core.WithResource("namespaces"),
		"event":       {Group: "events.k8s.io", Version: "v1", Resource: "events"},
	}
}

// Witness watches the API server directly, and keeps all that it tells of each
// namespace until it may forget it. It never lists anew, so it misses nothing; if
// it cannot go on where it was, it says so, and nothing is proven.
type Witness struct {
	all dynamic.Interface

	mu     sync.Mutex
	spaces map[string]*space
	lost   error
}

// space is what happened in one namespace.
type space struct {
	events []judge.Event
	said   strings.Builder // what events.k8s.io holds
}

// Watch begins to watch, until ctx ends.
func Watch(ctx context.Context, all dynamic.Interface) (*Witness, error) {
	w := &Witness{all: all, spaces: map[string]*space{}}
	for kind, resource := range kinds() {
		of := all.Resource(resource)
		list, err := of.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("beginning to watch %s: %w", kind, err)
		}
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return of.Watch(ctx, options)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("beginning to watch %s: %w", kind, err)
		}
		go w.receive(ctx, kind, watcher)
	}
	return w, nil
}

func (w *Witness) receive(ctx context.Context, kind string, watcher *watchtools.RetryWatcher) {
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Bookmark:
		case !ok || event.Type == watch.Error:
			w.fail(fmt.Errorf("the watch of %s ended: %v", kind, event.Object))
			return
		default:
			w.keep(kind, event.Type, object)
		}
	}
	if ctx.Err() == nil {
		w.fail(errors.New("the watch of " + kind + " ended"))
	}
}

func (w *Witness) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = errors.Join(w.lost, err)
}

func (w *Witness) keep(kind string, change watch.EventType, object *unstructured.Unstructured) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	namespace := object.GetNamespace()
	if kind == "namespace" {
		namespace = object.GetName()
	}
	s := w.spaces[namespace]
	if s == nil {
		return // nobody asked for it
	}
	object.SetManagedFields(nil)
	if kind == "event" {
		text, err := object.MarshalJSON()
		if err == nil {
			s.said.Write(text)
		}
		return
	}
	s.events = append(s.events, judge.Event{Version: judge.VersionOf(object), Seen: now, Type: change, Object: object})
}

// Remember keeps what happens in a namespace from now on. It must be called
// before the namespace is made.
func (w *Witness) Remember(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spaces[namespace] = &space{}
}

// Forget lets go of a namespace.
func (w *Witness) Forget(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.spaces, namespace)
}

// Events are those of a namespace so far, in order, and what Kubernetes Events
// have said there; an error tells that some were missed.
func (w *Witness) Events(namespace string) ([]judge.Event, string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.spaces[namespace]
	if s == nil {
		return nil, "", fmt.Errorf("namespace %s is not watched", namespace)
	}
	events := append([]judge.Event(nil), s.events...)
	judge.Sort(events)
	return events, s.said.String(), w.lost
}

// CatchUp waits until the Witness has seen what the API server holds in a
// namespace now.
func (w *Witness) CatchUp(ctx context.Context, namespace string) error {
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob", "configmap", "secret"} {
		list, err := w.all.Resource(kinds()[kind]).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("catching up with %s: %w", kind, err)
		}
		there := map[string]int64{}
		for i := range list.Items {
			list.Items[i].SetKind(kind)
			there[judge.Name(&list.Items[i])] = judge.VersionOf(&list.Items[i])
		}
		for !w.knows(namespace, kind, there) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("catching up with %s of %s: %w", kind, namespace, ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// knows reports whether each object was seen at its version or a later one, and
// whether the others were seen to go.
func (w *Witness) knows(namespace, kind string, there map[string]int64) bool {
	events, _, err := w.Events(namespace)
	if err != nil {
		return true // it never will, and the verdict says so
	}
	left := len(there)
	seen := map[string]judge.Event{}
	for _, event := range events {
		if strings.EqualFold(event.Object.GetKind(), kind) {
			seen[judge.Name(event.Object)] = event
		}
	}
	for name, event := range seen {
		version, is := there[name]
		if is && event.Version < version || !is && event.Type != watch.Deleted {
			return false
		}
		if is {
			left--
		}
	}
	return left == 0
}
