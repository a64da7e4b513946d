package follow_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// small is what the tests keep: a text of the data, "?" of an object that cannot be decoded.
type small struct {
	metav1.ObjectMeta
	text string
}

func (s *small) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (s *small) DeepCopyObject() runtime.Object   { return s }

// followed is a Store, how often it made each version small, and what it passed on.
type followed struct {
	follow.Store[*small]
	mu    sync.Mutex
	times map[string]int
	texts map[string]string
}

func (f *followed) small(whole runtime.Object) (*small, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	object, err := meta.Accessor(whole)
	if err != nil {
		return nil, false
	}
	f.times[object.GetName()+"@"+object.GetResourceVersion()]++
	s := &small{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}}
	switch of := whole.(type) {
	case *corev1.ConfigMap:
		s.text = of.Data["key"]
	case *corev1.Secret:
		s.text = string(of.Data["key"])
	case *appsv1.Deployment:
		s.text = of.Spec.Template.Spec.NodeName
	case *unstructured.Unstructured:
		s.text, _, _ = unstructured.NestedString(of.Object, "data", "key")
	case *metav1.PartialObjectMetadata:
		s.text = "?"
	}
	return s, true
}

func (f *followed) text(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts[name]
}

func (f *followed) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.texts)
}

// startFollowing runs a Store until the end of the test, or until it is stopped.
func startFollowing(t *testing.T, client rest.Interface, resource string) (f *followed, stop func()) {
	t.Helper()
	f = &followed{times: map[string]int{}, texts: map[string]string{}}
	f.Resource, f.Transform = resource, f.small
	f.Event = func(s *small, deleted bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.texts[s.Name] = s.text; deleted {
			delete(f.texts, s.Name)
		}
	}
	f.All = func(all []*small, _ string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		clear(f.texts)
		for _, s := range all {
			f.texts[s.Name] = s.text
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx, client) })
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return f, stop
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"key": value}}
}

type newClient func(*rest.Config) (*rest.RESTClient, error)

func typedCore(cfg *rest.Config) (*rest.RESTClient, error) {
	return follow.Typed(cfg, corev1.SchemeGroupVersion, corev1.AddToScheme)
}

func dynamicCore(cfg *rest.Config) (*rest.RESTClient, error) {
	return follow.Dynamic(cfg, corev1.SchemeGroupVersion)
}

func typedApps(cfg *rest.Config) (*rest.RESTClient, error) {
	return follow.TypedOrMetadata(cfg, appsv1.SchemeGroupVersion, appsv1.AddToScheme)
}

func connect(t *testing.T, cfg *rest.Config, client newClient) *rest.RESTClient {
	t.Helper()
	made, err := client(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// answerJSON has a server, or a proxy before it, answer JSON whatever is asked for.
func answerJSON(_ http.ResponseWriter, r *http.Request) bool {
	r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), runtime.ContentTypeProtobuf, runtime.ContentTypeJSON))
	return false
}

func TestStoreFollows(t *testing.T) {
	for name, c := range map[string]struct {
		client    newClient
		intercept func(http.ResponseWriter, *http.Request) bool
	}{"protobuf": {client: typedCore}, "dynamic": {client: dynamicCore}, "a server that answers JSON": {typedCore, answerJSON}} {
		for _, pages := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in pages %t", name, pages), func(t *testing.T) {
				t.Parallel()
				server := fakeapi.New(t)
				server.RefuseWatchList = pages
				server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if encoding := r.Header.Get("Accept-Encoding"); encoding != "" {
						t.Errorf("%s asks for %s", r.URL, encoding)
					}
					return c.intercept != nil && c.intercept(w, r)
				}
				follows(t, server, connect(t, server.Config(), c.client), pages)
			})
		}
	}
}

func follows(t *testing.T, server *fakeapi.Server, client rest.Interface, pages bool) {
	t.Helper()
	for i := range 1201 {
		server.Put("configmaps", configMap(fmt.Sprintf("web-%04d", i), "first"))
	}
	f, stop := startFollowing(t, client, "configmaps")
	fakeapi.Eventually(t, "1201 objects arrive", func() bool { return f.len() == 1201 })
	server.Bookmark("configmaps")
	server.Put("configmaps", configMap("web-0007", "second"))
	server.Put("configmaps", configMap("new", "third"))
	server.Delete("configmaps", "shop", "web-0008")
	fakeapi.Eventually(t, "changes arrive", func() bool {
		return f.text("web-0007") == "second" && f.text("new") == "third" && f.text("web-0008") == "" && f.text("web-0009") == "first"
	})
	consistent(t, server.Requests(), pages)

	// A relist, for which a Reflector asks without a limit, is paged too.
	server.Compact()
	server.CutWatches()
	server.Put("configmaps", configMap("newer", "fourth"))
	fakeapi.Eventually(t, "a change after 410 arrives", func() bool { return f.text("newer") == "fourth" && f.len() == 1202 })
	stop()
	for object, times := range f.times {
		if times > 2 || times > 1 && (strings.HasPrefix(object, "newer") || strings.HasPrefix(object, "web-0008")) { // before and after the relist
			t.Errorf("%s was made small %d times", object, times)
		}
	}
}

// consistent fails the test unless all LISTs were of consistent pages.
func consistent(t *testing.T, requests []string, pages bool) {
	t.Helper()
	lists := 0
	for _, request := range requests {
		if strings.Contains(request, "watch=true") || strings.HasSuffix(request, "limit=1") { // the latter asks for the version alone
			continue
		}
		limit := []string{"limit=50", "limit=2000"}[min(lists, 1)] // small objects make large pages
		if lists++; !strings.HasSuffix(request, limit) || strings.Contains(request, "resourceVersion=") {
			t.Errorf("not a consistent page: %s", request)
		}
	}
	if want := map[bool]int{true: 2, false: 0}[pages]; lists != want {
		t.Errorf("%d list requests, want %d", lists, want)
	}
}

func TestPagesBeginAnewWhenTheirContinuationExpires(t *testing.T) {
	server := fakeapi.New(t)
	server.RefuseWatchList = true
	for i := range 700 {
		server.Put("configmaps", configMap(fmt.Sprintf("web-%03d", i), "first"))
	}
	var once sync.Once
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("continue") {
			once.Do(server.Compact)
		}
		return false
	}
	f, _ := startFollowing(t, connect(t, server.Config(), typedCore), "configmaps")
	fakeapi.Eventually(t, "all arrive", func() bool { return f.len() == 700 })
}

// A server that is away for a moment has nothing listed anew.
func TestAWatchThatFailsToStartIsTriedAgain(t *testing.T) {
	server := fakeapi.New(t)
	server.RefuseWatchList = true
	var lists, refusals atomic.Int32
	server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		query := r.URL.Query()
		if !query.Has("watch") && query.Get("limit") != "1" {
			lists.Add(1)
			return false
		}
		if query.Has("sendInitialEvents") || refusals.Add(-1) < 0 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	server.Put("configmaps", configMap("web", "first"))
	f, _ := startFollowing(t, connect(t, server.Config(), typedCore), "configmaps")
	fakeapi.Eventually(t, "the first list", f.Filled)
	server.Put("configmaps", configMap("web", "second"))
	fakeapi.Eventually(t, "a change arrives", func() bool { return f.text("web") == "second" }) // of a watch without events a list follows
	refusals.Store(3)
	server.CutWatches()
	server.Put("configmaps", configMap("web", "third"))
	fakeapi.Eventually(t, "the next one arrives", func() bool { return f.text("web") == "third" })
	if refusals.Load() >= 0 || lists.Load() != 1 {
		t.Errorf("%d lists, want 1; %d refusals are left", lists.Load(), refusals.Load())
	}
}

// A given namespace may be gone: then there is no more to be known of it.
func TestARefusedNamespaceIsNotBehind(t *testing.T) {
	for namespace, progress := range map[string]bool{"gone": true, metav1.NamespaceAll: false} {
		server := fakeapi.New(t)
		server.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		store := &follow.Store[*corev1.ConfigMap]{Resource: "configmaps", Namespace: namespace}
		go store.Run(t.Context(), connect(t, server.Config(), typedCore))
		fakeapi.Eventually(t, "the list is refused", store.Refused)
		if known := !store.Progress.Last().IsZero(); known != progress {
			t.Errorf("namespace %q: progress %t", namespace, known)
		}
	}
}

// corrupting replaces parts of answers by others of the same length.
type corrupting struct {
	http.RoundTripper
	parts []string // from and to, in turn
}

func (c corrupting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		body := response.Body
		response.Body = struct {
			io.Reader
			io.Closer
		}{bufio.NewReaderSize(corrupted{body, c.parts}, 1<<20), body}
	}
	return response, err
}

type corrupted struct {
	io.Reader
	parts []string
}

func (c corrupted) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	for i := 0; i < len(c.parts); i += 2 {
		copy(into, bytes.ReplaceAll(into[:n], []byte(c.parts[i]), []byte(c.parts[i+1])))
	}
	return n, err
}

// parts makes the nodeName hunter2! one that cannot be decoded, in both forms.
func badNode() []string {
	return []string{"\x52\x08hunter2!", "\x57\x08hunter2!", `"nodeName":"hunter2!"`, `"nodeName":1234567890`}
}

// One object that cannot be decoded does not end the watch of the others.
func TestStoreOfAnUndecodableObject(t *testing.T) {
	deployment := func(name, node string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		d.Spec.Template.Spec.NodeName = node
		return d
	}
	for _, inJSON := range []bool{false, true} {
		for _, pages := range []bool{false, true} {
			t.Run(fmt.Sprintf("JSON %t, pages %t", inJSON, pages), func(t *testing.T) {
				t.Parallel()
				server := fakeapi.New(t)
				server.RefuseWatchList = pages
				if inJSON {
					server.Intercept = answerJSON
				}
				for i := range 100 {
					server.Put("deployments", deployment(fmt.Sprintf("web-%03d", i), "node"))
				}
				server.Put("deployments", deployment("web-003", "hunter2!"))
				server.Put("deployments", deployment("web-077", "hunter2!"))
				cfg := server.Config()
				cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return corrupting{next, badNode()} })
				f, _ := startFollowing(t, connect(t, cfg, typedApps), "deployments")
				fakeapi.Eventually(t, "all arrive", func() bool { return f.len() == 100 })
				for i := range 100 {
					want := "node"
					if i == 3 || i == 77 {
						want = "?"
					}
					if name := fmt.Sprintf("web-%03d", i); f.text(name) != want {
						t.Errorf("%s: %q, want %q", name, f.text(name), want)
					}
				}
				server.Put("deployments", deployment("web-000", "hunter2!"))
				server.Put("deployments", deployment("web-003", "mended"))
				fakeapi.Eventually(t, "changes arrive", func() bool { return f.text("web-000") == "?" && f.text("web-003") == "mended" })
			})
		}
	}
}

// Whatever a Secret looks like that cannot be decoded, or is of another kind, nothing of it is
// logged, and the Store is not filled without it.
func TestNothingOfWhatCannotBeReadIsLogged(t *testing.T) {
	const canary = "hunter2!hunter2!" // in base64 aHVudGVyMiFodW50ZXIyIQ==
	for name, c := range map[string]struct {
		json  bool
		parts []string
	}{
		"a wire type that does not exist": {false, []string{"\x12\x10" + canary, "\x1f\x10" + canary}},
		"a length beyond the end":         {false, []string{"\x12\x10" + canary, "\x12\x70" + canary}},
		"another kind":                    {false, []string{"\x12\x06Secret", "\x12\x06Secrxt", "\x12\x0aSecretList", "\x12\x0aSecrxtList"}},
		"a number":                        {true, []string{`"aHVudGVyMiFodW50ZXIyIQ=="`, "12345678901234567890123456"}},
		"no base64":                       {true, []string{`"aHVudGVyMiFodW50ZXIyIQ=="`, `"hunter2!hunter2!%hunter2"`}},
		"no kind":                         {true, []string{`"kind":"Secret`, `"kinx":"Secret`}},
		"no object":                       {true, []string{`{"kind":"Secret`, `["kind","Secret`}},
		"another kind in JSON":            {true, []string{`"kind":"Secret`, `"kind":"Secrxt`}},
	} {
		for _, pages := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pages %t", name, pages), func(t *testing.T) {
				server := fakeapi.New(t)
				server.RefuseWatchList = pages
				if c.json {
					server.Intercept = answerJSON
				}
				server.Put("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "token"}, Data: map[string][]byte{"key": []byte(canary)}})
				logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(5)))
				klog.SetLogger(logger)
				t.Cleanup(klog.ClearLogger)
				log := logger.GetSink().(ktesting.Underlier).GetBuffer()
				cfg := server.Config()
				cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return corrupting{next, c.parts} })
				f, stop := startFollowing(t, connect(t, cfg, typedCore), "secrets")
				fakeapi.Eventually(t, "a list fails", func() bool { return strings.Contains(log.String(), "failed to list secrets") })
				if f.Filled() {
					t.Error("it is filled")
				}
				stop()
				for _, part := range []string{"hunter2", "aHVudGVy", "1234567890"} {
					if strings.Contains(log.String(), part) {
						t.Errorf("it is logged: %s", log)
					}
				}
			})
		}
	}
}
