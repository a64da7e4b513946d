package namespace

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

func labelled(name, inject string, annotations ...string) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"example.com/owner": "x"}}}
	if inject != "" {
		namespace.Labels = map[string]string{"configstamp.dev/inject": inject}
	}
	for i := 0; i < len(annotations); i += 2 {
		namespace.Annotations["configstamp.dev/"+annotations[i]] = annotations[i+1]
	}
	return namespace
}

// heard lists the namespaces that a Store called for.
type heard struct {
	mu    sync.Mutex
	names []string
}

func (h *heard) hear(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = append(h.names, name)
}

func (h *heard) since(n int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.names[min(n, len(h.names)):])
}

func start(t *testing.T, server *fakeapi.Server, given ...string) (*Store, *heard) {
	t.Helper()
	store, err := NewStore(server.Config(), given, checksum.OptInLabelled)
	if err != nil {
		t.Fatal(err)
	}
	var h heard
	store.OnChange(h.hear)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := store.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	fakeapi.Eventually(t, "the store is filled", store.HasSynced)
	return store, &h
}

func TestStoreFollowsNamespaces(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("namespaces", labelled("shop", "enabled", "pause", "true", "ignore-keys", "x"))
	server.Put("namespaces", labelled("other", ""))
	store, heard := start(t, server)
	if shop := store.Get("shop"); !shop.OptedIn || shop.Settings["configstamp.dev/pause"] != "true" || shop.Settings["example.com/owner"] != "" {
		t.Errorf("%+v", shop)
	}
	if other := store.Get("other"); other.OptedIn || other.Settings != nil {
		t.Errorf("%+v", other)
	}
	if names := heard.since(0); len(names) > 0 {
		t.Errorf("told of %v in the initial fill", names)
	}
	server.Put("namespaces", labelled("other", "enabled"))
	fakeapi.Eventually(t, "other is opted in", func() bool { return store.Get("other").OptedIn })
	server.Put("namespaces", labelled("shop", "enabled", "pause", "false", "ignore-keys", "x"))
	fakeapi.Eventually(t, "shop's pause is over", func() bool { return store.Get("shop").Settings["configstamp.dev/pause"] == "false" })
	told := heard.since(0)
	unrelated := labelled("shop", "enabled", "pause", "false", "ignore-keys", "x")
	unrelated.Labels["x"] = "y"
	server.Put("namespaces", unrelated)
	server.Put("namespaces", labelled("last", ""))
	fakeapi.Eventually(t, "the last one is seen", func() bool { return slices.Contains(heard.since(0), "last") })
	if !slices.Equal(told, []string{"other", "shop"}) || !slices.Equal(heard.since(2), []string{"last"}) {
		t.Errorf("told of %v, then %v", told, heard.since(2))
	}
	// What changes while nobody watches is told of after the relist.
	server.Compact()
	server.CutWatches()
	server.Put("namespaces", labelled("shop", ""))
	server.Delete("namespaces", "", "other")
	fakeapi.Eventually(t, "shop is opted out, other is gone", func() bool {
		return !store.Get("shop").OptedIn && !store.Get("other").OptedIn
	})
	fakeapi.Eventually(t, "shop is told of", func() bool { return slices.Contains(heard.since(3), "shop") })
}

func TestLookReadsWhatIsNotKnownYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.Piped(t)
		store, err := NewStore(server.Config(), nil, checksum.OptInLabelled) // it never runs: nothing is known
		if err != nil {
			t.Fatal(err)
		}
		server.Put("namespaces", labelled("shop", "enabled", "mode", "observe"))
		record, err := store.Look(t.Context(), "shop")
		if err != nil || !record.OptedIn || record.Settings["configstamp.dev/mode"] != "observe" {
			t.Errorf("%+v, %v", record, err)
		}
		if live, err := store.Read(t.Context(), "shop"); err != nil || !live.OptedIn || live.Settings["configstamp.dev/mode"] != "observe" {
			t.Errorf("read live, it is %+v, %v", live, err)
		}
		if _, err := store.Look(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), "none") {
			t.Errorf("error %v", err)
		}
	})
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// An admission may ask twice, and has three seconds.
func TestWhatAnAdmissionReadsHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fakeapi.Piped(t).Config()
		var left []time.Duration
		cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
			return transport(func(r *http.Request) (*http.Response, error) {
				deadline, _ := r.Context().Deadline()
				left = append(left, time.Until(deadline))
				return nil, errors.New("made by the test")
			})
		})
		store, err := NewStore(cfg, nil, checksum.OptInLabelled)
		if err != nil {
			t.Fatal(err)
		}
		_, looked := store.Look(t.Context(), "shop")
		_, asked := store.Read(t.Context(), "shop")
		if looked == nil || asked == nil || len(left) != 2 {
			t.Fatalf("%v, %v, %d requests", looked, asked, len(left))
		}
		for _, left := range left {
			if left <= 0 || left > 1400*time.Millisecond {
				t.Errorf("a request may take %s", left)
			}
		}
	})
}

func TestGivenNamespacesAreOptedInAndReadOneByOne(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("namespaces", labelled("shop", "", "mode", "observe"))
	server.Put("namespaces", labelled("closed", "", "mode", "observe"))
	server.Refuse("/closed$", fakeapi.ErrForbidden)
	store, _ := start(t, server, "shop", "closed")
	if shop := store.Get("shop"); !shop.OptedIn || shop.Settings["configstamp.dev/mode"] != "observe" {
		t.Errorf("%+v", shop)
	}
	if closed := store.Get("closed"); !closed.OptedIn || closed.Settings != nil {
		t.Errorf("%+v", closed)
	}
	if closed, err := store.Read(t.Context(), "closed"); err != nil || !closed.OptedIn {
		t.Errorf("opted in: %+v, %v", closed, err)
	}
	for _, request := range server.Requests() {
		if !strings.Contains(request, "/api/v1/namespaces/shop") && !strings.Contains(request, "/api/v1/namespaces/closed") {
			t.Errorf("unexpected request %s", request)
		}
	}
}

// What a Namespace says is not taken for nothing because it could not be read.
func TestGivenNamespacesAreWaitedFor(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("namespaces", labelled("shop", "", "pause", "true"))
	var asked atomic.Int32
	server.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		if asked.Add(1) > 1 {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	store, _ := start(t, server, "shop", "shop")
	if shop := store.Get("shop"); shop.Settings["configstamp.dev/pause"] != "true" {
		t.Errorf("%+v", shop)
	}
}

// A Namespace without the label is opted in with the whole cluster, from memory and when it is read.
func TestStoreOptsTheWholeClusterIn(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("namespaces", labelled("shop", ""))
	server.Put("namespaces", labelled("out", "disabled"))
	store, err := NewStore(server.Config(), nil, checksum.OptInAll)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"shop": true, "out": false} {
		if live, err := store.Read(t.Context(), name); err != nil || live.OptedIn != want {
			t.Errorf("%s: %+v, %v", name, live, err)
		}
	}
}
