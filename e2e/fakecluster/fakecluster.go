// Package fakecluster is a small API server for tests of the kubectl plugin: it holds
// objects of any kind as JSON, made from manifests, lists them in pages and by selectors,
// answers metadata-only requests and discovery, refuses what it is
// told to refuse, and answers dry runs with the warnings that a test gives. It stores merge
// patches. It knows no schema, and no controller.
//
// Nothing but tests may import it. Start reading at New, then serve.go, write.go.
package fakecluster

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/internal/cache/piped"
)

// Server is the fake. What is exported may be set before requests arrive.
type Server struct {
	// Forbid reports whether the user may not do something: verb is get, list, watch, patch
	// or create. nil: all may be done.
	Forbid func(verb, resource, namespace string) bool
	// Dead reports whether a group has no backend, as an aggregated API may: what it serves,
	// "" for resource, or one of its resources. nil: none is.
	Dead func(group, resource string) bool
	// Dry gives the warnings with which a dry run of a patch is answered; an error is
	// what the API server says instead (400). nil: no warnings.
	// It is not asked where no label opts in, unless Everywhere is set, as --namespaces does.
	Dry        func(resource string, object *unstructured.Unstructured) (warnings []string, err error)
	Everywhere bool
	// Admit may change what a patch is about to store, as a webhook does, and gives the
	// warnings. It is asked of dry runs too, but for those that Dry answers.
	Admit func(manager string, object *unstructured.Unstructured) (warnings []string, err error)
	// Now, unless it is zero, is what the server's clock shows.
	Now time.Time
	// Intercept, unless nil, is told of each request, and what it accepts as an answer.
	Intercept func(resource, accept string)

	http  *httptest.Server
	pipes *piped.Listener // nil: it has sockets

	stopped atomic.Bool

	mu       sync.Mutex
	objects  map[string]*unstructured.Unstructured // by path
	requests []string
	writes   []Write
	version  int
}

// New starts a server that ends with the test, with the objects of some manifests (YAML
// files of several documents).
func New(t testing.TB, manifests ...string) *Server {
	t.Helper()
	s := prepare(t, manifests)
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Piped is New without sockets, for a test in a bubble of testing/synctest. Wrap reaches it.
func Piped(t testing.TB, manifests ...string) *Server {
	t.Helper()
	s := prepare(t, manifests)
	s.http, s.pipes = piped.Serve(t, s.serve)
	return s
}

func prepare(t testing.TB, manifests []string) *Server {
	t.Helper()
	s := &Server{objects: map[string]*unstructured.Unstructured{}}
	for _, file := range manifests {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(t, string(text))
	}
	return s
}

// Apply adds the objects of a manifest, or replaces them.
func (s *Server) Apply(t testing.TB, manifest string) {
	t.Helper()
	for document := range strings.SplitSeq(manifest, "\n---") {
		text, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if string(text) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil { // whole numbers are int64
			t.Fatalf("%v in:\n%s", err, document)
		}
		s.Put(object)
	}
}

// Put adds an object, or replaces it. It has the UID "uid-of-<name>" unless it says
// otherwise.
func (s *Server) Put(object *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object.GetUID() == "" {
		object.SetUID(UID(object.GetName()))
	}
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[pathOf(object)] = object
}

// Get is a copy of an object, by the path that the API has for it, to be changed and Put.
func (s *Server) Get(t testing.TB, path string) *unstructured.Unstructured {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[path] == nil {
		t.Fatalf("there is no %s", path)
	}
	return s.objects[path].DeepCopy()
}

// Config is how to reach the server.
func (s *Server) Config() *rest.Config { return s.Wrap(&rest.Config{Host: s.http.URL}) }

// Wrap has a config of a kubeconfig go through the server's pipes, where it has some.
func (s *Server) Wrap(config *rest.Config) *rest.Config {
	if s.pipes != nil {
		config.Transport = &http.Transport{DialContext: s.pipes.Dial}
	}
	return config
}

// Kubeconfig writes a file that says how to reach the server, with a default namespace,
// and returns its path.
func (s *Server) Kubeconfig(t testing.TB, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: fake\nclusters:\n- name: fake\n  cluster: {server: '" + s.http.URL +
		"'}\nusers:\n- name: fake\n  user: {}\ncontexts:\n- name: fake\n  context: {cluster: fake, user: fake, namespace: " + namespace + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Requests lists the requests so far, "GET /api/v1/configmaps?limit=500", and forgets
// them.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// Delete takes an object away, by the path that the API has for it.
func (s *Server) Delete(t testing.TB, path string) {
	t.Helper()
	s.Get(t, path)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, path)
}

// Stop ends all connections, and refuses others until Start.
func (s *Server) Stop() {
	s.stopped.Store(true)
	s.http.CloseClientConnections()
}

// Start has a server answer again.
func (s *Server) Start() { s.stopped.Store(false) }

// under lists the objects of a collection, by path.
func (s *Server) under(to *target) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*unstructured.Unstructured
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		of := parsePath(path)
		if of.group == to.group && of.resource == to.resource && (to.namespace == "" || to.namespace == of.namespace) {
			found = append(found, s.objects[path])
		}
	}
	return found
}

// serves lists the kinds of a group, by resource.
func (s *Server) serves(group, version string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := map[string]string{}
	for path, object := range s.objects {
		if of := parsePath(path); of.group == group && of.version == version {
			kinds[of.resource] = object.GetKind()
		}
	}
	return kinds
}
