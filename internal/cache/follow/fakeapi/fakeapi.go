// Package fakeapi is a small API server for tests: it lists in pages, watches
// with bookmarks and initial events, speaks protobuf and JSON, answers
// metadata-only requests, creates, updates and patches at a resourceVersion, and
// can misbehave as real ones do. It keeps a few kinds and validates nothing.
//
// Nothing but tests may import it. Start reading at New, then serve.go, write.go.
package fakeapi

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/cache/piped"
)

// Server is the fake. What is exported may be set before requests arrive.
type Server struct {
	// RefuseWatchList answers watches that ask for initial events with 422, as
	// servers without the feature do.
	RefuseWatchList bool
	// Intercept, when it returns true, has answered a request itself.
	Intercept func(w http.ResponseWriter, r *http.Request) bool

	http   *httptest.Server
	pipes  *piped.Listener // nil: it has sockets
	codec  serializer.CodecFactory
	scheme *runtime.Scheme

	mu          sync.Mutex
	version     int64
	compacted   int64 // watches from before this are refused with 410
	objects     map[string]map[string]runtime.Object
	history     []event
	moved       chan struct{} // closed and renewed whenever something happens
	cut         chan struct{} // closed and renewed to end all watches
	requests    []string
	refusals    map[string]*refusal // by pattern
	connections int
}

// refusal is the answer to requests that match.
type refusal struct {
	pattern *regexp.Regexp
	err     *apierrors.StatusError
	times   atomic.Int32
}

type event struct {
	kind     watch.EventType
	resource string
	version  int64
	object   runtime.Object
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := prepare(t)
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.EnableHTTP2 = true
	s.http.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.connections++
			s.mu.Unlock()
		}
	}
	s.http.StartTLS()
	t.Cleanup(func() {
		s.CutWatches()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Piped is New without sockets, for a test in a bubble of testing/synctest.
func Piped(t testing.TB) *Server {
	t.Helper()
	s := prepare(t)
	s.http, s.pipes = piped.Serve(t, s.serve)
	t.Cleanup(s.CutWatches)
	return s
}

func prepare(t testing.TB) *Server {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, admissionv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "configstamp.dev", Version: "v1alpha1", Kind: "ConfigRollout"}, &unstructured.Unstructured{})
	return &Server{
		scheme: scheme, codec: serializer.NewCodecFactory(scheme), version: 100,
		objects: map[string]map[string]runtime.Object{}, refusals: map[string]*refusal{}, moved: make(chan struct{}), cut: make(chan struct{}),
	}
}

// Config is how to reach the server.
func (s *Server) Config() *rest.Config {
	if s.pipes != nil {
		return &rest.Config{Host: s.http.URL, QPS: -1, Transport: &http.Transport{DialContext: s.pipes.Dial}}
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	return &rest.Config{Host: s.http.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// Requests lists the requests so far, "GET /api/v1/configmaps?limit=500", and
// deletes them.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// ErrForbidden is an error for Refuse.
var ErrForbidden = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right"))

// Refuse answers with err each request whose method and path match a regular expression, such as
// "PATCH .*/secrets/", until it is called with nil. times counts the refused requests.
func (s *Server) Refuse(pattern string, err *apierrors.StatusError) (times *atomic.Int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := &refusal{pattern: regexp.MustCompile(pattern), err: err}
	s.refusals[pattern] = made
	return &made.times
}

// Connections counts the connections ever made, pipes aside.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connections
}

// Put creates or updates an object and returns its new resourceVersion.
func (s *Server) Put(resource string, obj runtime.Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return accessorOf(s.put(resource, obj)).GetResourceVersion()
}

// put returns the object as stored.
func (s *Server) put(resource string, obj runtime.Object) runtime.Object {
	s.version++
	obj = withVersion(obj, s.version)
	kind := watch.Modified
	if s.objects[resource][keyOf(obj)] == nil {
		kind = watch.Added
	}
	s.set(resource, obj)
	s.happened(kind, resource, obj)
	return obj
}

// Delete deletes an object.
func (s *Server) Delete(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := s.objects[resource][namespace+"/"+name]
	delete(s.objects[resource], namespace+"/"+name)
	s.version++
	s.happened(watch.Deleted, resource, withVersion(obj, s.version))
}

// Get is an object as stored, not to be changed; nil when there is none.
func (s *Server) Get(resource, namespace, name string) runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[resource][namespace+"/"+name]
}

// Bookmark sends a bookmark to all watches.
func (s *Server) Bookmark(resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.happened(watch.Bookmark, resource, s.bookmark(resource, nil))
}

// CutWatches ends all watches; clients go on from where they were.
func (s *Server) CutWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// Compact makes watches and continue tokens from before be refused with 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.compacted = s.version
}

// Restore replaces all objects of a resource silently by what a snapshot of
// etcd held at an older version, deletes its history and ends all watches.
func (s *Server) Restore(resource string, version int64, objects ...runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.compacted, s.history = version, version, nil
	close(s.cut)
	s.cut = make(chan struct{})
	s.objects[resource] = map[string]runtime.Object{}
	for i, obj := range objects {
		s.set(resource, withVersion(obj, version-int64(len(objects)-i)))
	}
}

func (s *Server) set(resource string, obj runtime.Object) {
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]runtime.Object{}
	}
	s.objects[resource][keyOf(obj)] = obj
}

func (s *Server) happened(kind watch.EventType, resource string, obj runtime.Object) {
	s.history = append(s.history, event{kind, resource, s.version, obj})
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *Server) bookmark(resource string, annotations map[string]string) runtime.Object {
	obj := s.newObject(resource, "")
	accessor := accessorOf(obj)
	accessor.SetResourceVersion(strconv.FormatInt(s.version, 10))
	accessor.SetAnnotations(annotations)
	return obj
}

// newObject is an empty object of a resource, or a list of such with the suffix "List".
func (s *Server) newObject(resource, suffix string) runtime.Object {
	kind, known := map[string]schema.GroupVersionKind{
		"configmaps": corev1.SchemeGroupVersion.WithKind("ConfigMap"), "deployments": appsv1.SchemeGroupVersion.WithKind("Deployment"),
		"secrets": corev1.SchemeGroupVersion.WithKind("Secret"), "namespaces": corev1.SchemeGroupVersion.WithKind("Namespace"),
		"mutatingwebhookconfigurations":   admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		"validatingwebhookconfigurations": admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		"configrollouts":                  metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"), // for bookmarks
	}[resource]
	kind.Kind += suffix
	obj, err := s.scheme.New(kind)
	if err != nil || !known {
		panic(fmt.Sprintf("fakeapi does not know %s", resource))
	}
	return obj
}

func (s *Server) newList(resource string, items []runtime.Object, listMeta metav1.ListMeta) runtime.Object {
	list := s.newObject(resource, "List")
	accessor, err := meta.ListAccessor(list)
	if err = errors.Join(err, meta.SetList(list, items)); err != nil {
		panic(err)
	}
	accessor.SetResourceVersion(listMeta.ResourceVersion)
	accessor.SetContinue(listMeta.Continue)
	accessor.SetRemainingItemCount(listMeta.RemainingItemCount)
	return list
}

// accessorOf panics where there is no metadata.
func accessorOf(obj runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return accessor
}

func withVersion(obj runtime.Object, version int64) runtime.Object {
	obj = obj.DeepCopyObject()
	accessorOf(obj).SetResourceVersion(strconv.FormatInt(version, 10))
	return obj
}

func keyOf(obj runtime.Object) string {
	accessor := accessorOf(obj)
	return accessor.GetNamespace() + "/" + accessor.GetName()
}

func sorted(objects map[string]runtime.Object) []runtime.Object {
	return slices.SortedFunc(maps.Values(objects), func(a, b runtime.Object) int { return cmp.Compare(keyOf(a), keyOf(b)) })
}

// Eventually fails the test unless what holds within some seconds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(8 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 8 s: %s", what)
}
