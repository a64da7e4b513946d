package follow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// whole keeps objects as they are.
func whole(object runtime.Object) (runtime.Object, bool) { return object, true }

// counted counts how often each version of each object is condensed.
type counted struct {
	mu    sync.Mutex
	times map[string]int
}

func (c *counted) count(meta *metav1.ObjectMeta) *small {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = map[string]int{}
	}
	c.times[meta.Name+"@"+meta.ResourceVersion]++
	return &small{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: meta.Name, ResourceVersion: meta.ResourceVersion}}
}

func (c *counted) protobuf(kind string, message []byte) (runtime.Object, error) {
	var cm corev1.ConfigMap
	if err := cm.Unmarshal(message); err != nil || kind != "ConfigMap" {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	s := c.count(&cm.ObjectMeta)
	s.text = cm.Data["key"]
	clear(message) // whoever reads the same object twice finds nothing
	return s, nil
}

func (c *counted) raw(data []byte) (runtime.Object, error) {
	var d appsv1.Deployment
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	s := c.count(&d.ObjectMeta)
	s.text = d.Spec.Template.Annotations["key"]
	return s, nil
}

func (c *counted) deployment(message []byte) (runtime.Object, error) {
	var d appsv1.Deployment
	if err := d.Unmarshal(message); err != nil {
		return nil, err
	}
	s := c.count(&d.ObjectMeta)
	s.text = d.Spec.Template.Annotations["key"]
	clear(message)
	return s, nil
}

// none is for a form in which nothing may come.
func none([]byte) (runtime.Object, error) { return nil, errors.New("not in this form") }

func (c *counted) assertOnce(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for object, times := range c.times {
		if times != 1 {
			t.Errorf("%s was condensed %d times", object, times)
		}
	}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"key": value}}
}

func deployment(name, value string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	d.Spec.Template.Annotations = map[string]string{"key": value}
	return d
}

// flavour runs a test with both kinds of client.
type flavour struct {
	resource string
	object   func(name, value string) runtime.Object
	client   func(cfg *rest.Config, c *counted) (rest.Interface, error)
}

var flavours = map[string]flavour{
	"protobuf": {
		resource: "configmaps",
		object:   func(name, value string) runtime.Object { return configMap(name, value) },
		client: func(cfg *rest.Config, c *counted) (rest.Interface, error) {
			return follow.NewProtobuf(cfg, corev1.SchemeGroupVersion, corev1.AddToScheme, c.protobuf)
		},
	},
	"raw, JSON": {
		resource: "deployments",
		object:   func(name, value string) runtime.Object { return deployment(name, value) },
		client: func(cfg *rest.Config, c *counted) (rest.Interface, error) {
			return follow.NewRaw(cfg, appsv1.SchemeGroupVersion, c.raw)
		},
	},
	"either": {
		resource: "deployments",
		object:   func(name, value string) runtime.Object { return deployment(name, value) },
		client: func(cfg *rest.Config, c *counted) (rest.Interface, error) {
			return follow.NewEither(cfg, appsv1.SchemeGroupVersion, c.deployment, none)
		},
	},
}

func forFlavours(t *testing.T, test func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, c *counted)) {
	for name, f := range flavours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, c := fakeapi.New(t), &counted{}
			client, err := f.client(server.Config(), c)
			if err != nil {
				t.Fatal(err)
			}
			test(t, f, server, client, c)
		})
	}
}

// startReflector fills a store of client-go's from the server.
func startReflector(t *testing.T, client rest.Interface, resource string) cache.Store {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(follow.NewListWatch(client, resource, "", nil, whole), nil, store, cache.ReflectorOptions{TypeDescription: resource})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { reflector.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return store
}

func text(store cache.Store, name string) string {
	obj, exists, err := store.GetByKey("shop/" + name)
	if err != nil || !exists {
		return "absent"
	}
	return obj.(*small).text
}

func TestReflectorSeesEachObjectCondensedOnceFromFullData(t *testing.T) {
	forFlavours(t, func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, c *counted) {
		for i := range 50 {
			server.Put(f.resource, f.object(fmt.Sprintf("web-%02d", i), "first"))
		}
		store := startReflector(t, client, f.resource)
		fakeapi.Eventually(t, "50 objects arrive", func() bool { return len(store.ListKeys()) == 50 })
		server.Bookmark(f.resource)
		server.Put(f.resource, f.object("web-07", "second"))
		server.Put(f.resource, f.object("new", "third"))
		server.Delete(f.resource, "shop", "web-08")
		fakeapi.Eventually(t, "changes arrive", func() bool {
			return text(store, "web-07") == "second" && text(store, "new") == "third" && text(store, "web-08") == "absent"
		})
		for i := range 50 {
			if name := fmt.Sprintf("web-%02d", i); i != 7 && i != 8 && text(store, name) != "first" {
				t.Errorf("%s: %q", name, text(store, name))
			}
		}
		c.assertOnce(t)
		for _, request := range server.Requests() {
			if !strings.Contains(request, "watch=true") {
				t.Errorf("unexpected request %s", request)
			}
		}
	})
}

func TestReflectorFallsBackToConsistentPages(t *testing.T) {
	forFlavours(t, func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, c *counted) {
		server.RefuseWatchList = true
		for i := range 1201 {
			server.Put(f.resource, f.object(fmt.Sprintf("web-%04d", i), "first"))
		}
		store := startReflector(t, client, f.resource)
		fakeapi.Eventually(t, "1201 objects arrive", func() bool { return len(store.ListKeys()) == 1201 })
		server.Put(f.resource, f.object("new", "second"))
		fakeapi.Eventually(t, "a change arrives", func() bool { return text(store, "new") == "second" })
		lists := 0
		for _, request := range server.Requests() {
			if strings.Contains(request, "watch=true") || strings.HasSuffix(request, "limit=1") { // the latter asks for the version alone
				continue
			}
			limit := []string{"limit=50", "limit=2000"}[min(lists, 1)] // small objects make large pages
			lists++
			if !strings.HasSuffix(request, limit) || strings.Contains(request, "resourceVersion=") {
				t.Errorf("not a consistent page: %s", request)
			}
		}
		if lists != 2 {
			t.Errorf("%d list requests, want 2 pages", lists)
		}
		c.assertOnce(t)

		// A relist, for which a Reflector asks without a limit, is paged too.
		server.Compact()
		server.CutWatches()
		fakeapi.Eventually(t, "a relist", func() bool {
			return strings.Contains(strings.Join(server.Requests(), " "), "continue=")
		})
		server.Put(f.resource, f.object("newer", "third"))
		fakeapi.Eventually(t, "a change after 410 arrives", func() bool { return text(store, "newer") == "third" && len(store.ListKeys()) == 1203 })
	})
}

func TestPagedListBeginsAnewWhenItsContinuationExpires(t *testing.T) {
	forFlavours(t, func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, _ *counted) {
		for i := range 700 {
			server.Put(f.resource, f.object(fmt.Sprintf("web-%03d", i), "first"))
		}
		var once sync.Once
		server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("continue") {
				once.Do(server.Compact)
			}
			return false
		}
		obj, err := follow.NewListWatch(client, f.resource, "shop", nil, whole).ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			t.Fatal(err)
		}
		list := obj.(*metav1.List)
		if len(list.Items) != 700 || list.Continue != "" || list.ResourceVersion == "" {
			t.Errorf("%d items, continue %q, resourceVersion %q", len(list.Items), list.Continue, list.ResourceVersion)
		}
	})
}

func TestListKeepsWhatAPagerNeeds(t *testing.T) {
	forFlavours(t, func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, _ *counted) {
		empty, err := client.Get().Resource(f.resource).Do(t.Context()).Get()
		if err != nil {
			t.Fatal(err)
		}
		if list := empty.(*metav1.List); len(list.Items) != 0 || list.ResourceVersion == "" {
			t.Errorf("empty list: %+v", list)
		}
		for i := range 3 {
			server.Put(f.resource, f.object(fmt.Sprintf("web-%d", i), "first"))
		}
		obj, err := client.Get().Resource(f.resource).Param("limit", "2").Do(t.Context()).Get()
		if err != nil {
			t.Fatal(err)
		}
		list := obj.(*metav1.List)
		if list.Continue == "" || list.RemainingItemCount == nil || *list.RemainingItemCount != 1 || list.ResourceVersion != "103" {
			t.Errorf("list metadata: %+v", list.ListMeta)
		}
		if got := list.Items[1].Object.(*small); got.Name != "web-1" || got.text != "first" {
			t.Errorf("second item: %+v", got)
		}
	})
}

func TestGetPatchAndStatus(t *testing.T) {
	forFlavours(t, func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, _ *counted) {
		server.Put(f.resource, f.object("web", "first"))
		get := func() *rest.Request { return client.Get().Namespace("shop").Resource(f.resource) }
		obj, err := get().Name("web").Do(t.Context()).Get()
		if err != nil || obj.(*small).text != "first" {
			t.Errorf("GET: %v, %v", obj, err)
		}
		obj, err = client.Patch(types.MergePatchType).Namespace("shop").Resource(f.resource).Name("web").Body([]byte("{}")).Do(t.Context()).Get()
		if err != nil || obj.(*small).text != "first" {
			t.Errorf("PATCH: %v, %v", obj, err)
		}
		data, err := get().Name("web").Do(t.Context()).Raw()
		if err != nil || !strings.Contains(string(data), "first") {
			t.Errorf("raw GET: %q, %v", data, err)
		}
		if _, err = get().Name("none").Do(t.Context()).Get(); !apierrors.IsNotFound(err) {
			t.Errorf("GET of nothing: %v", err)
		}
		if err = get().Name("web").Do(t.Context()).Into(&corev1.ConfigMap{}); err == nil {
			t.Error("Into: want an error, as nothing is decoded into the object")
		}
		obj, err = get().Name("web").SetHeader("Accept", acceptMetadata(f)).Do(t.Context()).Get()
		if meta, ok := obj.(*metav1.PartialObjectMetadata); err != nil || !ok || meta.Name != "web" {
			t.Errorf("metadata alone: %v, %v", obj, err)
		}
	})
}

func acceptMetadata(f flavour) string {
	mediaType := runtime.ContentTypeProtobuf
	if f.resource == "deployments" {
		mediaType = runtime.ContentTypeJSON
	}
	return mediaType + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
}

func TestWatchPassesBookmarksAndErrors(t *testing.T) {
	forFlavours(t, func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, _ *counted) {
		watcher, err := follow.NewListWatch(client, f.resource, "", nil, whole).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "100", AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer watcher.Stop()
		server.Bookmark(f.resource)
		got := <-watcher.ResultChan()
		if meta, ok := got.Object.(*metav1.PartialObjectMetadata); !ok || meta.ResourceVersion != "100" || got.Type != "BOOKMARK" {
			t.Errorf("bookmark: %v %v", got.Type, got.Object)
		}
		server.Compact()
		if _, err = follow.NewListWatch(client, f.resource, "", nil, whole).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "100"}); !apierrors.IsResourceExpired(err) {
			t.Errorf("watch from a compacted version: %v", err)
		}
	})
}

func TestNothingIsAskedForCompressed(t *testing.T) {
	forFlavours(t, func(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, _ *counted) {
		var asked atomic.Int32
		server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if encoding := r.Header.Get("Accept-Encoding"); encoding != "" {
				t.Errorf("%s asks for %s", r.URL, encoding)
			}
			asked.Add(1)
			return false
		}
		startReflector(t, client, f.resource)
		fakeapi.Eventually(t, "a watch begins", func() bool { return asked.Load() > 0 })
	})
}

// A server, or a proxy before it, may answer JSON though protobuf was asked for.
func TestProtobufClientUnderstandsJSON(t *testing.T) {
	protobuf, either := flavours["protobuf"], flavours["either"]
	either.client = func(cfg *rest.Config, c *counted) (rest.Interface, error) {
		return follow.NewEither(cfg, appsv1.SchemeGroupVersion, none, c.raw)
	}
	for name, f := range map[string]flavour{"protobuf": protobuf, "either": either} {
		t.Run(name, func(t *testing.T) {
			server, c := fakeapi.New(t), &counted{}
			server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
				r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), runtime.ContentTypeProtobuf, runtime.ContentTypeJSON))
				return false
			}
			client, err := f.client(server.Config(), c)
			if err != nil {
				t.Fatal(err)
			}
			understandsAll(t, f, server, client, c)
		})
	}
}

func understandsAll(t *testing.T, f flavour, server *fakeapi.Server, client rest.Interface, c *counted) {
	t.Helper()
	server.Put(f.resource, f.object("web", "first"))
	store := startReflector(t, client, f.resource)
	fakeapi.Eventually(t, "it arrives", func() bool { return text(store, "web") == "first" })
	server.Bookmark(f.resource)
	server.Put(f.resource, f.object("web", "second"))
	fakeapi.Eventually(t, "a change arrives", func() bool { return text(store, "web") == "second" })
	c.assertOnce(t)
	get := client.Get().Namespace("shop").Resource(f.resource)
	if obj, err := get.Do(t.Context()).Get(); err != nil || len(obj.(*metav1.List).Items) != 1 || obj.(*metav1.List).Items[0].Object.(*small).text != "second" {
		t.Errorf("LIST: %v, %v", obj, err)
	}
	if _, err := get.Name("none").Do(t.Context()).Get(); !apierrors.IsNotFound(err) {
		t.Errorf("GET of nothing: %v", err)
	}
}

func TestErrorOfCondensingIsToldWithoutContent(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("configmaps", configMap("web", "hunter2"))
	client, err := follow.NewProtobuf(server.Config(), corev1.SchemeGroupVersion, corev1.AddToScheme, func(string, []byte) (runtime.Object, error) {
		return nil, errors.New("cannot")
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "web"} {
		request := client.Get().Namespace("shop").Resource("configmaps")
		if path != "" {
			request.Name(path)
		}
		if _, err := request.Do(t.Context()).Get(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
