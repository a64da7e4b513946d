package warning

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/configstamp/configstamp/internal/impact"
)

// secret must be nowhere but in a request.
const secret = "swordfish"

// fate is a Foreseer that foresees the same of every edit, and remembers the last.
type fate struct {
	answer   impact.Answer
	notReady bool
	panics   any
	waits    chan struct{} // nil: for nothing
	asked    []impact.Edit
}

func (f *fate) Foresee(edit impact.Edit) (impact.Answer, bool) {
	f.asked = append(f.asked, edit)
	if f.waits != nil {
		<-f.waits
	}
	if f.panics != nil {
		panic(f.panics)
	}
	return f.answer, !f.notReady
}

func newHandler(f *fate, resources ...string) *handler {
	if len(resources) == 0 {
		resources = []string{"configmaps", "secrets"}
	}
	return &handler{foresees: f, metrics: NewMetrics(prometheus.NewRegistry()), scope: Scope{Resources: resources, Serves: func(namespace string) bool { return namespace != "kube-system" }}}
}

// counted are the results that were counted.
func (h *handler) counted() map[result]int {
	all := map[result]int{}
	for _, r := range results() {
		if n := int(testutil.ToFloat64(h.metrics.reviews.WithLabelValues(string(r)))); n > 0 {
			all[r] = n
		}
	}
	return all
}

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "config"}, Data: data}
}

// asks is the request to make is of was; nil: to delete it.
func asks(t testing.TB, was, is any) *admissionv1.AdmissionRequest {
	t.Helper()
	raw := func(object any) []byte {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	request := &admissionv1.AdmissionRequest{UID: "1", Namespace: "shop", Name: "config", Operation: admissionv1.Delete, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	if _, ok := was.(*corev1.Secret); ok {
		request.Resource.Resource = "secrets"
	}
	request.OldObject.Raw = raw(was)
	if is != nil {
		request.Operation, request.Object.Raw = admissionv1.Update, raw(is)
	}
	return request
}

func review(t testing.TB, request *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.endpoint().ServeHTTP(w, r) }

func post(ctx context.Context, h http.Handler, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, Path+"?timeout=1s", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// allowed checks that an answer allows, and gives its warnings.
func allowed(t testing.TB, w *httptest.ResponseRecorder) []string {
	t.Helper()
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %s: %s: %v", w.Code, w.Header().Get("Content-Type"), w.Body, err)
	}
	if answer.APIVersion != "admission.k8s.io/v1" || answer.Kind != "AdmissionReview" || answer.Response == nil {
		t.Fatalf("the answer is not a review: %s", w.Body)
	}
	if r := answer.Response; !r.Allowed || r.Result != nil || r.Patch != nil || r.UID == "" {
		t.Fatalf("denied, or changed: %s", w.Body)
	}
	return answer.Response.Warnings
}

func silent(t testing.TB) context.Context { return klog.NewContext(t.Context(), klog.Logger{}) }

func captured(t testing.TB) (context.Context, *bytes.Buffer) {
	t.Helper()
	var output bytes.Buffer
	return klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&output), textlogger.Verbosity(10)))), &output
}
