package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// stale fills a store from the server and then stops it, so that it knows
// nothing of what comes after.
func stale(t testing.TB, server *fakeapi.Server) *Store {
	store, _ := newStore(t, server)
	run(t, store)()
	server.Requests()
	return store
}

func TestLookProvesWhatTheServerHoldsNow(t *testing.T) {
	helm := secret("shop", "sh.helm.release.v1.web.v1", "big")
	helm.Type = "helm.sh/release.v1"
	first, second := map[string]string{"a": "1"}, map[string]string{"a": "2"}
	cases := map[string]struct {
		edit     func(server *fakeapi.Server)
		source   checksum.Source
		want     *checksum.Content
		requests int
	}{
		"unchanged: one request, without the data": {func(*fakeapi.Server) {}, web, contentOf(first), 1},
		"changed: a second one for the content":    {func(s *fakeapi.Server) { s.Put("configmaps", configMap("shop", "web", second)) }, web, contentOf(second), 2},
		"deleted":                                  {func(s *fakeapi.Server) { s.Delete("configmaps", "shop", "web") }, web, nil, 1},
		"deleted and created again": {func(s *fakeapi.Server) {
			s.Delete("configmaps", "shop", "web")
			s.Put("configmaps", configMap("shop", "web", second))
		}, web, contentOf(second), 2},
		"never there":                    {func(*fakeapi.Server) {}, token, nil, 1},
		"created: its content at once":   {func(s *fakeapi.Server) { s.Put("secrets", secret("shop", "token", "x")) }, token, checksum.ContentOfSecret(secret("", "", "x")), 1},
		"a release of Helm's":            {func(s *fakeapi.Server) { s.Put("secrets", helm) }, checksum.Source{Kind: checksum.Secret, Name: helm.Name}, &checksum.Content{Unwatched: true}, 1},
		"a name that no object can have": {func(*fakeapi.Server) {}, checksum.Source{Kind: checksum.Secret, Name: "../x"}, nil, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New(t)
			server.Put("configmaps", configMap("shop", "web", first))
			store := stale(t, server)
			before, _ := store.Get("shop", web)
			c.edit(server)
			view, err := NewChecker(store, CheckerOptions{Timeout: 5 * time.Second}).Fresh(t.Context(), "shop", []checksum.Source{c.source, c.source}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if content, ok := view[c.source]; !ok || !content.Equal(c.want) || len(view) != 1 {
				t.Errorf("view: %v", view)
			}
			requests := server.Requests()
			if len(requests) != c.requests {
				t.Errorf("requests: %v, want %d", requests, c.requests)
			}
			for _, request := range requests {
				if strings.Contains(request, "resourceVersion") || !strings.Contains(request, "/namespaces/shop/"+resourceOf(c.source.Kind)+"/"+c.source.Name) {
					t.Errorf("not a consistent read of one object: %s", request)
				}
			}
			if after, _ := store.Get("shop", web); after.ResourceVersion != before.ResourceVersion {
				t.Error("Look wrote to the store")
			}
		})
	}
}

func many(server *fakeapi.Server, n int) []checksum.Source {
	var sources []checksum.Source
	for i := range n {
		source := checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint("web-", i)}
		server.Put("configmaps", configMap("shop", source.Name, map[string]string{"a": "1"}))
		sources = append(sources, source)
	}
	return sources
}

func TestLookIsBoundedInParallelAndKeepsItsConnections(t *testing.T) {
	server := fakeapi.New(t)
	sources := many(server, 30)
	var now, most atomic.Int32
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/web-") {
			return false
		}
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(time.Millisecond)
		return false
	}
	store := stale(t, server)
	connections := server.Connections()
	checker := NewChecker(store, CheckerOptions{Timeout: 5 * time.Second, Parallel: 8})
	view, err := checker.Fresh(t.Context(), "shop", sources, nil)
	if err != nil || len(view) != 30 {
		t.Fatalf("%d records, %v", len(view), err)
	}
	if most.Load() > 8 || most.Load() < 2 {
		t.Errorf("%d requests at once, want up to 8", most.Load())
	}
	after := server.Connections()
	if more := after - connections; more > 24 { // one is dialled while another comes free, now and then
		t.Errorf("%d connections for 30 requests, 8 at once", more)
	}
	for range 5 {
		if _, err := checker.Fresh(t.Context(), "shop", sources, nil); err != nil {
			t.Fatal(err)
		}
	}
	if more := server.Connections() - after; more > 8 {
		t.Errorf("%d connections more for the same again", more)
	}
}

// A workload may name thousands of sources, and the API server may hang.
func TestLookBeginsNoMoreThanThereCanBeRequests(t *testing.T) {
	server := fakeapi.New(t)
	goOn, hangs := make(chan struct{}), make(chan struct{}, 1)
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/web-") {
			select {
			case hangs <- struct{}{}:
			default:
			}
			<-goOn
		}
		return false
	}
	checker := NewChecker(stale(t, server), CheckerOptions{Timeout: time.Minute, Parallel: 8})
	server.Refuse("/configmaps$", fakeapi.ErrForbidden) // so that each is read
	var sources []checksum.Source
	for i := range 5000 {
		sources = append(sources, checksum.Source{Kind: checksum.ConfigMap, Name: fmt.Sprint("web-", i)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hangs
		cancel()
	}()
	_, err := checker.Fresh(ctx, "shop", sources, nil)
	if !errors.Is(err, ErrNotProven) || !strings.Contains(err.Error(), "4995 more") || len(err.Error()) > 500 {
		t.Errorf("%v", err)
	}
	// Reads go on for others when a Look ends, and none of these has ended.
	checker.reads.mu.Lock()
	if begun := len(checker.reads.lines); begun > 8 {
		t.Errorf("%d reads were begun, want no more than 8", begun)
	}
	checker.reads.mu.Unlock()
	close(goOn)
}

func TestLookSaysWhatCouldNotBeProven(t *testing.T) {
	cases := map[string]struct {
		intercept func(w http.ResponseWriter, r *http.Request) bool
		options   CheckerOptions
		want      []string
		is        error
	}{
		"one does not answer": {func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/web-3") {
				<-r.Context().Done()
			}
			return false
		}, CheckerOptions{Timeout: time.Second}, []string{"checking configmap/web-3 in namespace \"shop\"", "deadline"}, context.DeadlineExceeded},
		"none answers, with fewer slots than sources": {func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, CheckerOptions{Timeout: 50 * time.Millisecond, Parallel: 2}, []string{"3 more", "deadline"}, context.DeadlineExceeded},
		"a 404 that is not the API server's": {func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no such route", http.StatusNotFound)
			return true
		}, CheckerOptions{Timeout: 5 * time.Second}, []string{"configmap/web-0"}, nil},
		"a 404 in JSON that is no Status": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":"nope"}`))
			return true
		}, CheckerOptions{Timeout: 5 * time.Second}, []string{"configmap/web-0"}, nil},
		"too many requests, try again in a minute": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, CheckerOptions{Timeout: time.Second}, []string{"configmap/web-0"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.Piped(t)
				sources := many(server, 8)
				var begins atomic.Bool
				server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					return begins.Load() && c.intercept != nil && c.intercept(w, r)
				}
				store := stale(t, server)
				begins.Store(true)
				begun := time.Now()
				view, err := NewChecker(store, c.options).Fresh(t.Context(), "shop", sources, nil)
				if !errors.Is(err, ErrNotProven) || view != nil || (c.is != nil && !errors.Is(err, c.is)) {
					t.Fatalf("%v, %v", view, err)
				}
				if took := time.Since(begun); took > c.options.Timeout {
					t.Errorf("took %s", took)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %q lacks %q", err, want)
					}
				}
			})
		})
	}
}

func TestLookNeedsNoFilledStore(t *testing.T) {
	server := fakeapi.New(t)
	server.Put("configmaps", configMap("shop", "web", map[string]string{"a": "1"}))
	store, _ := newStore(t, server, "bank")
	view, err := NewChecker(store, CheckerOptions{Timeout: 5 * time.Second}).Fresh(t.Context(), "shop", []checksum.Source{web}, nil)
	if err != nil || !view[web].Equal(contentOf(map[string]string{"a": "1"})) {
		t.Errorf("%v, %v", view, err)
	}
}

func TestNothingOfASourceIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.Piped(t)
		server.RefuseWatchList = true // so that bodies are read
		server.Put("secrets", secret("shop", "token", "hunter2"))
		var logged strings.Builder
		var logging sync.Mutex
		logger := funcr.New(func(prefix, args string) {
			logging.Lock()
			defer logging.Unlock()
			logged.WriteString(prefix + args)
		}, funcr.Options{Verbosity: 7})
		store, _ := newStore(t, server)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		done := make(chan struct{})
		go func() { defer close(done); _ = store.Run(ctx) }()
		fakeapi.Eventually(t, "the store is filled", store.HasSynced)
		server.Put("secrets", secret("shop", "token", "hunter3"))
		cancel()
		<-done
		if _, err := NewChecker(store, CheckerOptions{}).Fresh(klog.NewContext(t.Context(), logger), "shop", []checksum.Source{token}, nil); err != nil {
			t.Fatal(err)
		}
		if text := logged.String(); text == "" || strings.Contains(text, "hunter") || strings.Contains(text, "68 75 6e 74 65 72") {
			t.Errorf("logged: %s", text)
		}
	})
}

// A connection may be cut under a read, or the API server may have too much to do for a
// moment: that is no reason not to know.
func TestAReadThatFailsOnceIsMadeAgain(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"the connection is cut": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"the API server fails":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New(t)
			server.Put("configmaps", configMap("shop", "web", map[string]string{"a": "1"}))
			var failures atomic.Int32
			server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/web") && failures.Add(1) <= 1 {
					fail(w)
					return true
				}
				return false
			}
			found, err := NewChecker(stale(t, server), CheckerOptions{Timeout: 5 * time.Second}).Fresh(t.Context(), "shop", []checksum.Source{web}, nil)
			if err != nil || !found[web].Equal(contentOf(map[string]string{"a": "1"})) || failures.Load() < 2 {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}
