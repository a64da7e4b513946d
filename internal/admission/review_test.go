package admission

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

func silent(t testing.TB) context.Context {
	return klog.NewContext(t.Context(), klog.Logger{})
}

// TestTheAnswerComesBeforeTheAPIServerGivesUp: whatever it waits, and says.
func TestTheAnswerComesBeforeTheAPIServerGivesUp(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"?timeout=3s": 1875 * time.Millisecond, "?timeout=1s": 375 * time.Millisecond, "?timeout=30s": 22125 * time.Millisecond,
		"?timeout=100h": 22125 * time.Millisecond,
		"":              7125 * time.Millisecond, "?timeout=soon": 7125 * time.Millisecond, "?timeout=-1s": 7125 * time.Millisecond,
	} {
		if got := Within(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mutate"+query, nil)); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

// What a review holds is gone from memory with it.
func TestBodiesAreWiped(t *testing.T) {
	var bodies Bodies
	body := bodies.Get()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","object":{"a":"swordfish"}}}`))
	r.Header.Set("Content-Type", "application/json")
	request, status, err := Read(httptest.NewRecorder(), r, body)
	if err != nil || status != http.StatusOK || string(request.Object.Raw) != `{"a":"swordfish"}` {
		t.Fatalf("%v, %d, %v", request, status, err)
	}
	all := body.Bytes()
	bodies.Put(body)
	if len(bytes.Trim(all, "\x00")) > 0 {
		t.Errorf("%q", all)
	}
}
