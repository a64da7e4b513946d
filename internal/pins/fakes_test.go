package pins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

var errUnread = errors.New("the API server did not answer in time")

// snapshots are an archive.
type snapshots struct {
	held   map[string]snapshot
	unread error // why none can be read
}

type snapshot struct {
	of      checksum.Source
	content *checksum.Content
}

// put adds a snapshot, and returns its name.
func (s *snapshots) put(of checksum.Source, data map[string]string) string {
	key, err := checksum.NewKey(bytes.Repeat([]byte{'n'}, checksum.KeySize))
	if err != nil {
		panic(err)
	}
	content := checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: data})
	name := checksum.NewRing(key).SnapshotName("shop", of, content)
	s.held[name] = snapshot{of, content}
	return name
}

func (s *snapshots) Content(_ context.Context, _, name string, of checksum.Source) (*checksum.Content, error) {
	if found, ok := s.held[name]; ok && found.of == of && s.unread == nil {
		return found.content, nil
	}
	return nil, s.unread
}

// owners holds the owner of a Pod, nil: there is none. unread is why it cannot be read.
type owners struct {
	stored []byte
	unread error
}

func (o *owners) Stored(_ context.Context, kind *workload.Kind, _, _ string) (*workload.Object, error) {
	if o.stored == nil || o.unread != nil {
		return nil, o.unread
	}
	return kind.Decode(o.stored)
}

func silent(t testing.TB) context.Context { return klog.NewContext(t.Context(), klog.Logger{}) }

// admit sends a request through HTTP, and checks that it is allowed.
func admit(ctx context.Context, t testing.TB, h http.Handler, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/pods?timeout=10s", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil || !answer.Response.Allowed || answer.Response.UID != request.UID {
		t.Fatalf("the answer allows nothing: %d %s", w.Code, w.Body)
	}
	return answer.Response
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func apply(t testing.TB, object, patch []byte) []byte {
	t.Helper()
	if patch == nil {
		return object
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("reading patch %s: %v", patch, err)
	}
	result, err := operations.Apply(object)
	if err != nil {
		t.Fatalf("applying patch %s to %s: %v", patch, object, err)
	}
	return result
}

// rewritten is an object as an API server sends it, false if it is none.
func rewritten(raw []byte) ([]byte, bool) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, false
	}
	text, err := json.Marshal(value)
	return text, err == nil
}
