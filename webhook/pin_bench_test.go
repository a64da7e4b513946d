package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/checksum"
)

// BenchmarkPod is the answer for one new Pod of 8 KB, without TLS and TCP: by our entry,
// which pins six references of two containers, and by two webhooks that add one annotation:
// one that reads no more than it must, and one as tutorials write it, with encoding/json
// and Kubernetes' own types.
func BenchmarkPod(b *testing.B) {
	pods, _, name := podEntry(b)
	request := podRequest(b, name, benchmarkedPod())
	body := review(b, request)
	var counted bodies
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, &counted, func(int) {}, func(_ context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return allow(request, "one", []jsonpatch.Operation{jsonpatch.NewOperation("add", "/metadata/annotations/example.com~1one", "yes")}, nil)
		})
	})
	for _, of := range []struct {
		name    string
		handler http.Handler
	}{{"pinned", pods}, {"one-annotation", bare}, {"one-annotation-usual", http.HandlerFunc(usualWebhook)}} {
		b.Run(of.name, func(b *testing.B) {
			if response := admit(silent(b), b, of.handler, request); response.Patch == nil {
				b.Fatal("nothing is changed")
			}
			sent := bytes.NewReader(body)
			r := httptest.NewRequestWithContext(silent(b), http.MethodPost, "/pods?timeout=1s", sent)
			r.Header.Set("Content-Type", "application/json")
			w := &answered{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				sent.Reset(body)
				w.status = http.StatusOK
				if of.handler.ServeHTTP(w, r); w.status != http.StatusOK || w.bytes == 0 {
					b.Fatal(w.status)
				}
			}
		})
	}
}

func benchmarkedPod() string {
	var text strings.Builder
	text.WriteString(podMetadata + "\nspec:\n  containers:\n")
	for i := range 2 {
		fmt.Fprintf(&text, "  - name: c%d\n    image: web:1\n    volumeMounts: [{name: v%d, mountPath: /etc/web}]\n    envFrom: [{configMapRef: {name: web-message}}]\n    env:\n    - {name: M, valueFrom: {configMapKeyRef: {name: web-message, key: MESSAGE}}}\n", i, i)
		for j := range 40 {
			fmt.Fprintf(&text, "    - {name: VARIABLE_%d, value: %s}\n", j, strings.Repeat("v", 60))
		}
	}
	text.WriteString("  volumes:\n")
	for i := range 2 {
		fmt.Fprintf(&text, "  - {name: v%d, configMap: {name: web-message}}\n", i)
	}
	return text.String()
}

// usualWebhook adds an annotation.
func usualWebhook(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var review admissionv1.AdmissionReview
	var pod corev1.Pod
	if json.Unmarshal(body, &review) != nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	patchType := admissionv1.PatchTypeJSONPatch
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &patchType,
		Patch: []byte(`[{"op":"add","path":"/metadata/annotations/example.com~1one","value":"yes"}]`)}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// The Pod of the benchmark is pinned as it says.
func TestBenchmarkedPod(t *testing.T) {
	pods, _, name := podEntry(t)
	request := podRequest(t, name, benchmarkedPod())
	response := admit(silent(t), t, pods, request)
	var pod corev1.Pod
	if err := yaml.Unmarshal(apply(t, request.Object.Raw, response.Patch), &pod); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(patchLines(t, response.Patch), " "+name); n != 6 || pod.Annotations[checksum.PinnedAnnotation] == "" {
		t.Errorf("%d references are pinned: %s", n, response.Patch)
	}
}
