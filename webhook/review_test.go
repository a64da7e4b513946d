package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/pins"
)

// caseRequest is the request of one of the case files, and a handler that
// holds its sources.
func caseRequest(t testing.TB, name string) (*Handler, *admissionv1.AdmissionRequest) {
	t.Helper()
	c, _ := readCase(t, "testdata/cases/"+name+".yaml")
	return c.handler(t), c.request(t, c.requested(t))
}

// TestNotAReview: what is no admission review gets an HTTP error, never a panic.
func TestNotAReview(t *testing.T) {
	handler, request := caseRequest(t, "create-deployment")
	good := string(review(t, request))
	with := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("no %s in %s", from, good)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, test := range map[string]struct {
		method, contentType, body string
		want                      int
	}{
		"two objects":                    {http.MethodPost, "application/json", with(`"object":{`, `"object":{"a":1},"object":{`), http.StatusBadRequest},
		"a GET":                          {http.MethodGet, "application/json", "", http.StatusMethodNotAllowed},
		"a PUT":                          {http.MethodPut, "application/json", good, http.StatusMethodNotAllowed},
		"no content type":                {http.MethodPost, "", good, http.StatusUnsupportedMediaType},
		"YAML":                           {http.MethodPost, "application/yaml", good, http.StatusUnsupportedMediaType},
		"a content type that is garbage": {http.MethodPost, ";;", good, http.StatusUnsupportedMediaType},
		"no body":                        {http.MethodPost, "application/json", "", http.StatusBadRequest},
		"truncated JSON":                 {http.MethodPost, "application/json", good[:len(good)/2], http.StatusBadRequest},
		"two reviews":                    {http.MethodPost, "application/json", good + good, http.StatusBadRequest},
		"null":                           {http.MethodPost, "application/json", "null", http.StatusBadRequest},
		"a list":                         {http.MethodPost, "application/json", "[]", http.StatusBadRequest},
		"no uid":                         {http.MethodPost, "application/json", with(string(request.UID), ""), http.StatusBadRequest},
		"no request":                     {http.MethodPost, "application/json", with(`"request"`, `"question"`), http.StatusBadRequest},
		"an old version":                 {http.MethodPost, "application/json", with("admission.k8s.io/v1", "admission.k8s.io/v1beta1"), http.StatusBadRequest},
		"another kind":                   {http.MethodPost, "application/json", with(`"AdmissionReview"`, `"ConversionReview"`), http.StatusBadRequest},
		"larger than the limit":          {http.MethodPost, "application/json", with(`"object":{`, `"object":{"big":"`+strings.Repeat("x", admission.MaxBytes)+`",`), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			before := testutil.ToFloat64(handler.Metrics.malformed.WithLabelValues(fmt.Sprint(test.want)))
			r := httptest.NewRequestWithContext(silent(t), test.method, "/mutate", strings.NewReader(test.body))
			r.Header.Set("Content-Type", test.contentType)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("got %d (%s), want %d", w.Code, strings.TrimSpace(w.Body.String()), test.want)
			}
			if test.want == http.StatusMethodNotAllowed && w.Header().Get("Allow") != http.MethodPost {
				t.Errorf("Allow: %q", w.Header().Get("Allow"))
			}
			if after := testutil.ToFloat64(handler.Metrics.malformed.WithLabelValues(fmt.Sprint(test.want))); after != before+1 {
				t.Errorf("counted %v times", after-before)
			}
		})
	}
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// TestOddRequests: a review with a uid is always allowed, whatever it is about.
func TestOddRequests(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*admissionv1.AdmissionRequest)
		outcome  string
		warnings int
		patched  bool
	}{
		"a plain CREATE":                {func(*admissionv1.AdmissionRequest) {}, "stamped", 0, true},
		"a kind that is none of ours":   {func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "services" }, "not-served", 0, false},
		"another group":                 {func(r *admissionv1.AdmissionRequest) { r.Resource.Group = "extensions" }, "not-served", 0, false},
		"a subresource":                 {func(r *admissionv1.AdmissionRequest) { r.SubResource = "scale" }, "not-served", 0, false},
		"DELETE":                        {func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete; r.Object.Raw = nil }, "not-served", 0, false},
		"CONNECT":                       {func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Connect }, "not-served", 0, false},
		"an operation of the future":    {func(r *admissionv1.AdmissionRequest) { r.Operation = "RENAME" }, "not-served", 0, false},
		"no object":                     {object(""), "unreadable", 1, false},
		"an object that is null":        {object("null"), "unreadable", 1, false},
		"an object that is a text":      {object(`"Deployment"`), "unreadable", 1, false},
		"an object that is a list":      {object(`[]`), "unreadable", 1, false},
		"an object without metadata":    {object(`{"spec":{"template":{"spec":{"containers":[{"envFrom":[{"configMapRef":{"name":"a","optional":true}}]}]}}}}`), "unreadable", 1, false},
		"metadata of a wrong type":      {object(`{"metadata":[]}`), "unreadable", 1, false},
		"annotations of a wrong type":   {object(`{"metadata":{"name":"a"},"spec":{"template":{"metadata":{"annotations":{"a":1}}}}}`), "unreadable", 1, false},
		"a spec of a wrong type":        {object(`{"metadata":{"name":"a"},"spec":[]}`), "unreadable", 1, false},
		"a pod spec of a wrong type":    {object(`{"metadata":{"name":"a"},"spec":{"template":{"spec":7}}}`), "unreadable", 1, false},
		"no template":                   {object(`{"metadata":{"name":"a"},"spec":{}}`), "stamped", 0, false},
		"a nested field":                {object(`{"metadata":{"name":"a"},"status":` + nested(5000) + `}`), "stamped", 0, false},
		"nested deeper than JSON goes":  {object(`{"metadata":{"name":"a"},"status":` + nested(20_000) + `}`), "unreadable", 1, false},
		"duplicate keys":                {object(`{"metadata":{"name":"a","name":"b"},"spec":{},"spec":{"template":{}}}`), "stamped", 0, false},
		"field names in another case":   {object(`{"metadata":{"name":"a"},"SPEC":{"TEMPLATE":{"spec":7}}}`), "stamped", 0, false},
		"text that is not UTF-8":        {object("{\"metadata\":{\"name\":\"a\",\"annotations\":{\"a\":\"\xff\xfe\"}}}"), "stamped", 0, false},
		"an UPDATE without an old one":  {func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }, "unreadable", 1, false},
		"options that cannot be read":   {func(r *admissionv1.AdmissionRequest) { r.Options.Raw = []byte(`[7]`) }, "stamped", 0, true},
		"a review without any optional": {func(r *admissionv1.AdmissionRequest) { r.Options.Raw, r.DryRun, r.Name = nil, nil, "" }, "stamped", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			handler, request := caseRequest(t, "create-deployment")
			test.change(request)
			// Raw JSON is put in by hand: json.Marshal would mend or refuse it.
			raw := request.Object.Raw
			request.Object.Raw = []byte(`"here"`)
			body := bytes.Replace(review(t, request), []byte(`"object":"here"`), append([]byte(`"object":`), raw...), 1)
			if len(raw) == 0 {
				request.Object = runtime.RawExtension{}
				body = review(t, request)
			}
			response := allowed(t, post(silent(t), handler, body), request)
			if got := response.AuditAnnotations["outcome"]; got != test.outcome {
				t.Errorf("outcome %s, want %s (%v)", got, test.outcome, response.Warnings)
			}
			if len(response.Warnings) != test.warnings || (response.Patch != nil) != test.patched {
				t.Errorf("warnings %q, patch %s", response.Warnings, response.Patch)
			}
		})
	}
}

// An invented review of a namespace that is never served is answered as one that is not ours,
// and nothing of it is read.
func TestExcludedNamespaces(t *testing.T) {
	handler, request := caseRequest(t, "create-deployment")
	excluded := request.Namespace
	handler.Serves = func(namespace string) bool { return namespace != excluded }
	pods := (&pins.Pods{Metrics: pins.NewMetrics(prometheus.NewRegistry(), handler.Metrics.Refused), Serves: handler.Serves}).Endpoint()
	pod := *request
	pod.Resource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	for about, c := range map[string]struct {
		serves  http.Handler
		request *admissionv1.AdmissionRequest
	}{"a workload": {handler, request}, "a Pod": {pods, &pod}} {
		c.request.Object.Raw = []byte(`"cannot be read"`)
		for namespace, want := range map[string]string{excluded: "not-served", "another": "un"} {
			c.request.Namespace = namespace
			response := allowed(t, post(silent(t), c.serves, review(t, c.request)), c.request)
			if got := response.AuditAnnotations["outcome"]; !strings.HasPrefix(got, want) || (len(response.Warnings) == 0) != (namespace == excluded) {
				t.Errorf("%s in %s: outcome %s, %q", about, namespace, got, response.Warnings)
			}
		}
	}
}

func object(raw string) func(*admissionv1.AdmissionRequest) {
	return func(r *admissionv1.AdmissionRequest) { r.Object.Raw = []byte(raw) }
}

// TestLargeObject: an object of 3 MiB passes together with its old version.
func TestLargeObject(t *testing.T) {
	handler, request := caseRequest(t, "rollout-restart")
	for _, raw := range []*[]byte{&request.Object.Raw, &request.OldObject.Raw} {
		*raw = bytes.Replace(*raw, []byte(`{`), []byte(`{"big":"`+strings.Repeat("x", 3<<20)+`",`), 1)
	}
	if response := admit(silent(t), t, handler, request); response.Patch == nil {
		t.Errorf("not stamped: %v", response.Warnings)
	}
}

// TestNothingLeaks: neither the answer nor the log, at any verbosity, holds
// what a source or a plain environment variable holds, and the log holds no
// digests, whatever goes wrong.
func TestNothingLeaks(t *testing.T) {
	const marker = "swordfish"
	for name, spoil := range map[string]func(*Handler, *admissionv1.AdmissionRequest){
		"nothing goes wrong":       func(*Handler, *admissionv1.AdmissionRequest) {},
		"freshness fails":          func(h *Handler, _ *admissionv1.AdmissionRequest) { h.Sources.(*cluster).unproven = errUnproven },
		"the sources panic":        func(h *Handler, r *admissionv1.AdmissionRequest) { h.Sources.(*cluster).panics = string(r.Object.Raw) },
		"there is no key":          func(h *Handler, _ *admissionv1.AdmissionRequest) { h.Keys = &keyring{none: true} },
		"a key is missing":         func(_ *Handler, r *admissionv1.AdmissionRequest) { replace(r, `"key":"password"`, `"key":"absent"`) },
		"a field has a wrong type": func(_ *Handler, r *admissionv1.AdmissionRequest) { replace(r, `"image":"web:1"`, `"env":"`+marker+`"`) },
		"a name of a wrong type": func(_ *Handler, r *admissionv1.AdmissionRequest) {
			replace(r, `"name":"PASSWORD"`, `"name":{"`+marker+`":1}`)
		},
		"a metadata of wrong type": func(_ *Handler, r *admissionv1.AdmissionRequest) {
			replace(r, `"labels":{"app":"web"}`, `"annotations":"`+marker+`"`)
		},
		"a baseline is unreadable": func(_ *Handler, r *admissionv1.AdmissionRequest) {
			replace(r, `"name":"web-app"`, `"name":"web-app","annotations":{"configstamp.dev/baseline":"`+marker+`"}`)
		},
		"a stamp is made up": func(_ *Handler, r *admissionv1.AdmissionRequest) {
			replace(r, `"labels":{"app":"web"}`, `"annotations":{"configmap.configstamp.dev/web-message":"`+marker+`"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			handler, request := caseRequest(t, "create-deployment")
			replace(request, `"name":"web"`, `"name":"web","command":["--token=`+marker+`"]`)
			replace(request, `"env":[{"name":"PASSWORD"`, `"env":[{"name":"TOKEN","value":"`+marker+`"},{"name":"PASSWORD"`)
			spoil(handler, request)
			ctx, output := captured(t)
			w := post(ctx, handler, review(t, request))
			response := allowed(t, w, request)
			patch := string(response.Patch)
			response.Patch = nil // base64 in the answer
			readable, err := json.Marshal(response)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(patch, marker) {
				t.Errorf("the patch holds content: %s", patch)
			}
			for what, text := range map[string]string{"log": output.String(), "answer": string(readable)} {
				if strings.Contains(text, marker) {
					t.Errorf("the %s holds content: %s", what, text)
				}
				if strings.Contains(text, newKey.ID()) {
					t.Errorf("the %s holds a digest: %s", what, text)
				}
			}
			if output.Len() == 0 {
				t.Error("nothing was logged")
			}
		})
	}
}

func replace(r *admissionv1.AdmissionRequest, from, to string) {
	if !bytes.Contains(r.Object.Raw, []byte(from)) {
		panic("no " + from + " in " + string(r.Object.Raw))
	}
	r.Object.Raw = bytes.Replace(r.Object.Raw, []byte(from), []byte(to), 1)
}

// TestFreshnessIsCounted: an operator sees how often it cannot be proven.
func TestFreshnessIsCounted(t *testing.T) {
	handler, request := caseRequest(t, "create-deployment")
	for range 2 {
		handler.Admit(silent(t), request)
	}
	handler.Sources.(*cluster).unproven = context.DeadlineExceeded
	handler.Admit(silent(t), request)
	for label, want := range map[string]float64{"true": 2, "false": 1} {
		if got := testutil.ToFloat64(handler.Metrics.fresh.WithLabelValues(label)); got != want {
			t.Errorf("proven=%s: %v, want %v", label, got, want)
		}
	}
}
