package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// kinds are what the Witness watches and users write, by kubectl's name.
func kinds() map[string]schema.GroupVersionResource {
	apps, core := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Version: "v1"}
	return map[string]schema.GroupVersionResource{
		"deployment":         apps.WithResource("deployments"),
		"statefulset":        apps.WithResource("statefulsets"),
		"daemonset":          apps.WithResource("daemonsets"),
		"replicaset":         apps.WithResource("replicasets"),
		"controllerrevision": apps.WithResource("controllerrevisions"),
		"cronjob":            {Group: "batch", Version: "v1", Resource: "cronjobs"},
		"configmap":          core.WithResource("configmaps"),
		"secret":             core.WithResource("secrets"),
		"namespace":          core.WithResource("namespaces"),
		"event":              {Group: "events.k8s.io", Version: "v1", Resource: "events"},
		// Where there are nodes (e2e/rollouts): what Pods do, and whom Services reach.
		"pod":           core.WithResource("pods"),
		"endpointslice": {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	}
}

// Witness watches the API server directly, and keeps all that it tells of each
// namespace until it may forget it. It goes on where it was, so it misses nothing; only
// after an API server began anew it lists, and what it finds then is a gap.
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
	notes  []judge.Note
}

// Watch begins to watch, until ctx ends.
func Watch(ctx context.Context, all dynamic.Interface) (*Witness, error) {
	w := &Witness{all: all, spaces: map[string]*space{}}
	ctx = klog.NewContext(ctx, logr.Discard()) // an API server that is away is no news here
	for kind, resource := range kinds() {
		list, err := all.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("beginning to watch %s: %w", kind, err)
		}
		go w.follow(ctx, kind, list.GetResourceVersion())
	}
	return w, nil
}

// follow watches one kind. An API server that began anew does not know what came
// before: what a list tells is then kept as found in a gap.
func (w *Witness) follow(ctx context.Context, kind, version string) {
	of := w.all.Resource(kinds()[kind])
	for ctx.Err() == nil {
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return of.Watch(ctx, options)
			},
		})
		if err != nil {
			w.fail(fmt.Errorf("watching %s: %w", kind, err))
			return
		}
		if err := w.receive(kind, watcher); err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			w.fail(fmt.Errorf("watching %s: %w", kind, err))
			return
		}
		for ctx.Err() == nil {
			list, err := of.List(ctx, metav1.ListOptions{})
			if err == nil {
				w.fill(kind, list)
				version = list.GetResourceVersion()
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// receive keeps what a watch tells until it ends.
func (w *Witness) receive(kind string, watcher *watchtools.RetryWatcher) error {
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Bookmark:
		case !ok || event.Type == watch.Error:
			watcher.Stop()
			return apierrors.FromObject(event.Object)
		default:
			w.keep(kind, event.Type, object, false)
		}
	}
	return nil
}

// fill keeps what a list tells that no event has told.
func (w *Witness) fill(kind string, list *unstructured.UnstructuredList) {
	there := map[string]bool{}
	for i := range list.Items {
		object := &list.Items[i]
		there[object.GetNamespace()+"/"+object.GetName()] = true
		if last := w.last(kind, object.GetNamespace(), object.GetName()); last == nil || last.Version < judge.VersionOf(object) {
			w.keep(kind, watch.Modified, object, true)
		}
	}
	w.mu.Lock()
	var namespaces []string
	for namespace := range w.spaces {
		namespaces = append(namespaces, namespace)
	}
	w.mu.Unlock()
	version, _ := strconv.ParseInt(list.GetResourceVersion(), 10, 64)
	for _, namespace := range namespaces {
		events, _, err := w.Events(namespace)
		if err != nil {
			continue
		}
		for _, event := range events {
			name := event.Object.GetName()
			if !strings.EqualFold(event.Object.GetKind(), kind) || there[event.Object.GetNamespace()+"/"+name] {
				continue
			}
			if last := w.last(kind, event.Object.GetNamespace(), name); last != nil && last.Type != watch.Deleted {
				gone := last.Object.DeepCopy()
				gone.SetResourceVersion(strconv.FormatInt(version, 10))
				w.keep(kind, watch.Deleted, gone, true)
			}
		}
	}
}

// last is the last that is known of an object.
func (w *Witness) last(kind, namespace, name string) *judge.Event {
	if kind == "namespace" {
		namespace = name
	}
	events, _, err := w.Events(namespace)
	if err != nil {
		return nil
	}
	for i := len(events) - 1; i >= 0; i-- {
		if strings.EqualFold(events[i].Object.GetKind(), kind) && events[i].Object.GetName() == name {
			return &events[i]
		}
	}
	return nil
}

func (w *Witness) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = errors.Join(w.lost, err)
}

func (w *Witness) keep(kind string, change watch.EventType, object *unstructured.Unstructured, gap bool) {
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
	written := writtenAt(object)
	object.SetManagedFields(nil)
	if kind == "event" {
		text, err := object.MarshalJSON()
		if err == nil {
			s.said.Write(text)
		}
		s.note(object)
		return
	}
	s.events = append(s.events, judge.Event{Version: judge.VersionOf(object), Seen: now, Written: written, Type: change, Object: object, Gap: gap})
}

// note keeps what a Kubernetes Event says, once.
func (s *space) note(event *unstructured.Unstructured) {
	text := func(path ...string) string {
		found, _, _ := unstructured.NestedString(event.Object, path...)
		return found
	}
	one := judge.Note{About: strings.ToLower(text("regarding", "kind")) + "/" + text("regarding", "name"), Reason: text("reason"), Text: text("note")}
	if !slices.Contains(s.notes, one) {
		s.notes = append(s.notes, one)
	}
}

// Notes are the Kubernetes Events of a namespace so far.
func (w *Witness) Notes(namespace string) []judge.Note {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.spaces[namespace]; s != nil {
		return slices.Clone(s.notes)
	}
	return nil
}

// writtenAt is when fields of an object were last written by somebody.
func writtenAt(object *unstructured.Unstructured) (last time.Time) {
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
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
// namespace now, for a minute at most.
func (w *Witness) CatchUp(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, kind := range []string{"deployment", "statefulset", "daemonset", "cronjob", "configmap", "secret", "replicaset", "controllerrevision", "pod", "endpointslice"} {
		for seen := false; !seen; {
			there, err := w.there(ctx, namespace, kind)
			if err != nil {
				return fmt.Errorf("catching up with %s of %s: %w", kind, namespace, err)
			}
			// What goes meanwhile may never be seen at its version: so it is listed again.
			until := time.Now().Add(2 * time.Second)
			for seen = w.knows(namespace, kind, there); !seen && time.Now().Before(until); seen = w.knows(namespace, kind, there) {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}
	return nil
}

// there are the versions of the objects of a kind that a namespace holds now.
func (w *Witness) there(ctx context.Context, namespace, kind string) (map[string]int64, error) {
	list, err := w.all.Resource(kinds()[kind]).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	there := map[string]int64{}
	for i := range list.Items {
		list.Items[i].SetKind(kind)
		there[judge.Name(&list.Items[i])] = judge.VersionOf(&list.Items[i])
	}
	return there, nil
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
