package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

func fuzzedHandler(t testing.TB) *Handler {
	all := contents(t, map[string]map[string]string{
		"configmap/web-message": {"MESSAGE": "hello"},
		"secret/db":             {"password": "swordfish"},
	})
	handler := newHandler(&cluster{contents: all})
	handler.Dialects = []checksum.Dialect{checksum.Reloader, checksum.Wave}
	handler.Pins = &pins.Pins{Snapshots: &store{ring: checksum.NewRing(newKey, oldKey), snapshots: map[string]kept{}, sources: all}, Revisions: handler.Revisions}
	return handler
}

// FuzzServeHTTP: whatever comes as a body, the answer is an HTTP error of the
// client or a well-formed review that allows.
func FuzzServeHTTP(f *testing.F) {
	for _, file := range caseFiles(f) {
		c, _ := readCase(f, file)
		if c.PadTemplate+c.PadWorkload == 0 {
			f.Add(review(f, c.request(f, c.requested(f))))
		}
	}
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","resource":{"resource":"pods"},"operation":"CREATE","object":null}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","options":7}}`))
	f.Add([]byte(`{"kind":"AdmissionReview","Request":{"UID":"\ud800"}}`))
	handler, ctx := fuzzedHandler(f), silent(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(ctx, handler, body)
		if w.Code == http.StatusBadRequest || w.Code == http.StatusRequestEntityTooLarge {
			return
		}
		sent := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mutate", bytes.NewReader(body))
		sent.Header.Set("Content-Type", "application/json")
		request, _, err := admission.Read(httptest.NewRecorder(), sent, new(bytes.Buffer)) // an object that is none is admitted as it is
		if err != nil {
			t.Fatalf("answered %d to no review: %v", w.Code, err)
		}
		response := allowed(t, w, request)
		if response.AuditAnnotations["outcome"] == reason.AdmissionFailed.Label() {
			t.Fatalf("failed: %v", response.Warnings)
		}
	})
}

// FuzzObject: whatever the objects of a review are, the patch applies (one
// that does not is a denial), changes nothing but our annotations, and leaves
// nothing to do for a second admission.
func FuzzObject(f *testing.F) {
	table := workload.Builtin()
	for _, file := range caseFiles(f) {
		c, _ := readCase(f, file)
		if c.PadTemplate+c.PadWorkload > 0 {
			continue
		}
		object := c.requested(f)
		row := slices.IndexFunc(table, func(k *workload.Kind) bool { return k.Name == kindOf(f, object).Name })
		f.Add([]byte(object), []byte(c.Stored), byte(row), c.FieldManager)
	}
	handler, ctx := fuzzedHandler(f), silent(f)
	f.Fuzz(func(t *testing.T, object, stored []byte, row byte, manager string) {
		kind := table[int(row)%len(table)]
		object, ok := rewritten(object)
		if !ok {
			return
		}
		request := &admissionv1.AdmissionRequest{UID: "1", Namespace: caseNamespace, Operation: admissionv1.Create}
		request.Resource.Group, request.Resource.Resource = kind.Group, kind.Resource
		request.Object.Raw = object
		if stored, ok := rewritten(stored); ok {
			request.Operation = admissionv1.Update
			request.OldObject.Raw = stored
			setManager(request, manager)
		}
		response := admit(ctx, t, handler, request)
		if response.AuditAnnotations["outcome"] == reason.AdmissionFailed.Label() {
			t.Fatalf("failed: %v", response.Warnings)
		}
		if response.Patch == nil {
			return
		}
		result := apply(t, object, response.Patch)
		if !sameButOurs(t, kind, object, result) {
			t.Fatalf("something that is not ours changed:\nbefore %s\nafter  %s", object, result)
		}
		request.Object.Raw = result
		if again := admit(ctx, t, handler, request); again.Patch != nil {
			t.Fatalf("a second admission of\n%s\nchanges it again: %s", result, again.Patch)
		}
		if response.AuditAnnotations["outcome"] != reason.Stamped.Label() || kind.CreateOnly {
			return
		}
		request.Operation, request.OldObject.Raw = admissionv1.Update, result
		setManager(request, checksum.RollingManager)
		if again := admit(ctx, t, handler, request); again.Patch != nil {
			t.Fatalf("what was stamped in\n%s\nis not true: %s", result, again.Patch)
		}
	})
}

// rewritten is an object as an API server sends it: it never passes on the
// text that it got, so there are no duplicate keys and no broken UTF-8.
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
