// Package front is for tests: it gives client-go's fake clientset an HTTP front, so that
// what speaks to an API server by REST meets the fake's objects and reactors. Objects have
// no versions, so it refuses no conflicting update; lists have, so that a watch misses
// nothing. It has no WatchList, like older API servers.
package front

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configstamp/configstamp/internal/cache/piped"
)

// Serve serves a fake clientset until the test ends, and returns how to reach it.
func Serve(t testing.TB, client *fake.Clientset) *rest.Config {
	server := httptest.NewServer(&front{client: client, histories: map[asked]*history{}})
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// Piped is Serve without sockets, for a test in a bubble of testing/synctest.
func Piped(t testing.TB, client *fake.Clientset) *rest.Config {
	f := &front{client: client, histories: map[asked]*history{}}
	server, pipes := piped.Serve(t, f.ServeHTTP)
	t.Cleanup(f.forget)
	return &rest.Config{Host: server.URL, QPS: -1, Transport: &http.Transport{DialContext: pipes.Dial}}
}

type front struct {
	client *fake.Clientset

	mu        sync.Mutex
	histories map[asked]*history
}

// history is what has happened to a resource since the first request for it.
type history struct {
	tells watch.Interface

	mu     sync.Mutex
	events []watch.Event
	more   chan struct{} // closed at the next event
}

func (f *front) history(of asked) (*history, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.histories[of]; h != nil {
		return h, nil
	}
	events, err := f.client.Tracker().Watch(of.GroupVersionResource, of.namespace)
	if err != nil {
		return nil, err
	}
	h := &history{tells: events, more: make(chan struct{})}
	f.histories[of] = h
	go func() {
		for event := range events.ResultChan() {
			h.mu.Lock()
			h.events = append(h.events, event)
			close(h.more)
			h.more = make(chan struct{})
			h.mu.Unlock()
		}
	}()
	return h, nil
}

// forget ends what follows the histories.
func (f *front) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.histories {
		h.tells.Stop()
	}
}

// since returns what has happened after a version, what reports more, and the present version.
func (h *history) since(version int) (events []watch.Event, more <-chan struct{}, now int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.events[min(version, len(h.events)):], h.more, len(h.events)
}

// asked is what a request's path names.
type asked struct {
	schema.GroupVersionResource
	namespace, name string
}

// parse reads /api/v1/namespaces/a/secrets/b and /apis/group/version/resource.
func parse(path string) (a asked) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" {
		a.Group, parts = parts[1], parts[1:]
	}
	a.Version, parts = parts[1], parts[2:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		a.namespace, parts = parts[1], parts[2:]
	}
	a.Resource = parts[0]
	if len(parts) > 1 {
		a.name = parts[1]
	}
	return a
}

// kind is that of a resource: the one whose plural it is.
func (a asked) kind() schema.GroupVersionKind {
	for kind := range scheme.Scheme.KnownTypes(a.GroupVersion()) {
		if plural, _ := meta.UnsafeGuessKindToResource(a.GroupVersion().WithKind(kind)); plural.Resource == a.Resource {
			return a.GroupVersion().WithKind(kind)
		}
	}
	return schema.GroupVersionKind{}
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := parse(r.URL.Path)
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") != "" {
		f.watch(w, r, a)
		return
	}
	object, err := f.invoke(r, a)
	answer(w, object, err)
}

// invoke has the fake do what a request asks, and gives a list a version.
func (f *front) invoke(r *http.Request, a asked) (runtime.Object, error) {
	action, err := a.action(r)
	if err != nil {
		return nil, err
	}
	kind, version := a.kind(), 0
	list, lists := action.(clienttesting.ListAction)
	if lists {
		h, err := f.history(a)
		if err != nil {
			return nil, err
		}
		_, _, version = h.since(0)
		kind.Kind += "List"
	}
	empty, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	object, err := f.client.Invokes(action, empty)
	if lists && err == nil {
		err = selected(object, list, version)
	}
	return object, err
}

// action is what a request asks of the fake.
func (a asked) action(r *http.Request) (clienttesting.Action, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var object runtime.Object
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if object, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	switch r.Method {
	case http.MethodPost:
		return clienttesting.NewCreateAction(a.GroupVersionResource, a.namespace, object), nil
	case http.MethodPut:
		return clienttesting.NewUpdateAction(a.GroupVersionResource, a.namespace, object), nil
	case http.MethodPatch:
		return clienttesting.NewPatchAction(a.GroupVersionResource, a.namespace, a.name, types.PatchType(r.Header.Get("Content-Type")), body), nil
	case http.MethodGet:
		if a.name != "" {
			return clienttesting.NewGetAction(a.GroupVersionResource, a.namespace, a.name), nil
		}
		return clienttesting.NewListAction(a.GroupVersionResource, a.kind(), a.namespace, options(r)), nil
	}
	return nil, apierrors.NewMethodNotSupported(a.GroupResource(), r.Method)
}

func options(r *http.Request) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: r.URL.Query().Get("fieldSelector")}
}

// selected leaves out what a field selector does not name, and gives the list a version.
func selected(object runtime.Object, action clienttesting.ListAction, version int) error {
	all, err := meta.ExtractList(object)
	if err != nil {
		return err
	}
	some := slices.DeleteFunc(all, func(item runtime.Object) bool { return !matches(item, action.GetListRestrictions().Fields) })
	list, err := meta.ListAccessor(object)
	if err != nil {
		return err
	}
	list.SetResourceVersion(strconv.Itoa(version + 1)) // 0 would be any version
	return meta.SetList(object, some)
}

func matches(object runtime.Object, selector fields.Selector) bool {
	accessor, err := meta.Accessor(object)
	return err == nil && (selector == nil || selector.Matches(fields.Set{"metadata.name": accessor.GetName()}))
}

func (f *front) watch(w http.ResponseWriter, r *http.Request, a asked) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		answer(w, nil, apierrors.NewBadRequest("this server has no WatchList"))
		return
	}
	// The fake is asked whether it allows the watch; what happens is sent from the history.
	action := clienttesting.NewWatchAction(a.GroupVersionResource, a.namespace, options(r))
	allowed, err := f.client.InvokesWatch(action)
	if err != nil {
		answer(w, nil, err)
		return
	}
	allowed.Stop()
	h, err := f.history(a)
	if err != nil {
		answer(w, nil, err)
		return
	}
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	version--
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	flush := http.NewResponseController(w).Flush
	for {
		events, more, now := h.since(max(version, 0))
		for _, event := range events {
			if matches(event.Object, action.GetWatchRestrictions().Fields) {
				_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: string(event.Type), Object: runtime.RawExtension{Object: typed(event.Object)}})
			}
		}
		_ = flush()
		version = now
		select {
		case <-r.Context().Done():
			return
		case <-more:
		}
	}
}

// typed is a copy of an object that says of what kind it is.
func typed(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return object
}

func answer(w http.ResponseWriter, object runtime.Object, err error) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			status = apierrors.NewInternalError(err)
		}
		said := status.Status()
		said.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.WriteHeader(int(said.Code))
		_ = json.NewEncoder(w).Encode(said)
		return
	}
	_ = json.NewEncoder(w).Encode(typed(object))
}
