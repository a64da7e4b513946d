package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

var (
	newKey  = mustKey('n')
	oldKey  = mustKey('o')
	lostKey = mustKey('l')
)

func mustKey(b byte) checksum.Key {
	key, err := checksum.NewKey(bytes.Repeat([]byte{b}, checksum.KeySize))
	if err != nil {
		panic(err)
	}
	return key
}

// cluster is what the sources hold; it stands for both the cache and the API server.
type cluster struct {
	contents checksum.Contents
	// unproven is why freshness cannot be proven.
	unproven error
	// unknown is why memory cannot tell either.
	unknown error
	panics  any
	// settings are the Namespace's, unread is why they cannot be read.
	settings map[string]string
	unread   error
	// unlabelled is the Namespace; behind tells that memory has it as it was before its label and its settings.
	unlabelled, behind bool
	inject             string // label of the Namespace; "" means enabled, unless it is unlabelled
	optIn              checksum.OptIn
	edited             time.Time
}

// serve has a handler ask the cluster alone.
func (c *cluster) serve(h *Handler) { h.Sources, h.People, h.Own = c, c, c }

func (c *cluster) Cached(string, []checksum.Source) (checksum.Contents, error) {
	if c.unknown != nil {
		return nil, c.unknown
	}
	return c.contents, nil
}

func (c *cluster) Written(string, checksum.Source) (written, created time.Time) {
	return c.edited, time.Time{}
}

func (c *cluster) Fresh(context.Context, string, []checksum.Source, []checksum.Source) (checksum.Contents, error) {
	if c.panics != nil {
		panic(c.panics)
	}
	if c.unproven != nil {
		return nil, c.unproven
	}
	return c.contents, nil
}

// contents condenses plain data, by "configmap/<name>" and the like.
func contents(t testing.TB, sources map[string]map[string]string) checksum.Contents {
	t.Helper()
	all := checksum.Contents{}
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		source, err := checksum.ParseSource(name)
		if err != nil {
			t.Fatal(err)
		}
		switch source.Kind {
		case checksum.ConfigMap:
			all[source] = checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: sources[name]})
			continue
		case checksum.SecretProviderClass:
			all[source] = checksum.ContentOfVersions(sources[name])
			continue
		case checksum.Secret:
		}
		data := map[string][]byte{}
		for key, value := range sources[name] {
			data[key] = []byte(value)
		}
		all[source] = checksum.ContentOfSecret(&corev1.Secret{Data: data})
	}
	return all
}

// keyring signs with the new key and still knows the old one.
type keyring struct {
	none, found bool
	once        sync.Once
	ring        *checksum.Ring
	unreachable error
	lookups     []string
}

func (k *keyring) Ring() *checksum.Ring {
	switch {
	case k.none:
		return nil
	case k.found && len(k.lookups) > 0:
		return checksum.NewRing(newKey, oldKey, lostKey)
	}
	k.once.Do(func() { k.ring = checksum.NewRing(newKey, oldKey) }) // as the real one
	return k.ring
}

func (k *keyring) Refresh(_ context.Context, id string) (bool, error) {
	k.lookups = append(k.lookups, id)
	return k.found, k.unreachable
}

// Look implements Namespaces.
func (c *cluster) Look(context.Context, string) (checksum.Namespace, error) {
	if c.behind {
		return checksum.Namespace{}, c.unread
	}
	return c.namespace(), c.unread
}

// Read implements Namespaces.
func (c *cluster) Read(context.Context, string) (checksum.Namespace, error) {
	return c.namespace(), c.unread
}

func (c *cluster) namespace() checksum.Namespace {
	labels := map[string]string{}
	if !c.unlabelled {
		labels[checksum.InjectLabel] = cmp.Or(c.inject, checksum.InjectEnabled)
	}
	n := checksum.NamespaceOf(&metav1.ObjectMeta{Labels: labels}, c.optIn)
	n.Settings = c.settings
	return n
}

func (c *cluster) Names(_ string, kind checksum.Kind) []string {
	var names []string
	for source, content := range c.contents {
		if source.Kind == kind && content != nil {
			names = append(names, source.Name)
		}
	}
	return names
}

var errUnproven = errors.New("the API server did not answer in time")

func newHandler(c *cluster) *Handler {
	return &Handler{
		Kinds:      workload.Builtin().With(workload.Known()...),
		Policy:     checksum.DefaultPolicy(),
		Namespaces: c,
		Sources:    c,
		People:     c,
		Own:        c,
		Keys:       &keyring{},
		Revisions:  &revisions{},
		Metrics:    NewMetrics(prometheus.NewRegistry()),
	}
}

// captured is a context whose log goes into a buffer, at the highest verbosity.
func captured(t testing.TB) (context.Context, *bytes.Buffer) {
	t.Helper()
	var output bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&output), textlogger.Verbosity(10)))
	return klog.NewContext(t.Context(), logger), &output
}

func silent(t testing.TB) context.Context {
	return klog.NewContext(t.Context(), klog.Logger{})
}

func review(t testing.TB, request *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.Endpoint().ServeHTTP(w, r) }

func post(ctx context.Context, h http.Handler, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mutate?timeout=10s", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// admit sends a request through HTTP, checks the form of the answer, and gives it.
func admit(ctx context.Context, t testing.TB, h http.Handler, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	return allowed(t, post(ctx, h, review(t, request)), request)
}

// allowed checks that an answer is a review that allows its request.
func allowed(t testing.TB, w *httptest.ResponseRecorder, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	if answer.APIVersion != "admission.k8s.io/v1" || answer.Kind != "AdmissionReview" || answer.Response == nil {
		t.Fatalf("the answer is not a review: %s", w.Body)
	}
	response := answer.Response
	if !response.Allowed || response.Result != nil {
		t.Fatalf("denied: %s", w.Body)
	}
	if response.UID != request.UID {
		t.Fatalf("uid %q, want %q", response.UID, request.UID)
	}
	if (response.Patch == nil) != (response.PatchType == nil) || (response.PatchType != nil && *response.PatchType != admissionv1.PatchTypeJSONPatch) {
		t.Fatalf("patch and patch type do not go together: %s", w.Body)
	}
	return response
}
