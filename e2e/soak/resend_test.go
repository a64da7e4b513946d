package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Why the hard death of a webhook's process cannot go unnoticed: the API server
// asks once. A connection that ends before the answer, or that nobody accepts,
// fails the admission at once, whoever else could have answered. (It does ask
// again if an answer says so; who is dead gives none.)
func TestTheAPIServerAsksOnce(t *testing.T) {
	for _, way := range []struct {
		name   string
		answer func(http.ResponseWriter) // the first time; then all is allowed
		asked  int64
		fails  string
	}{
		{"CutOff", func(w http.ResponseWriter) {
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = connection.Close()
			}
		}, 1, "EOF"},
		{"AskedToComeAgain", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 2, ""},
		{"Refused", nil, 0, "connection refused"},
	} {
		t.Run(way.name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var review admissionv1.AdmissionReview
				body, err := io.ReadAll(r.Body)
				if err == nil {
					err = json.Unmarshal(body, &review)
				}
				if err != nil || review.Request == nil {
					http.Error(w, "no review", http.StatusBadRequest)
					return
				}
				if review.Request.Name == "asked" && asked.Add(1) == 1 { // a new namespace gets a ConfigMap by itself, too
					way.answer(w)
					return
				}
				review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
				_ = json.NewEncoder(w).Encode(review)
			}))
			var err error
			server.Listener, err = net.Listen("tcp", net.JoinHostPort(cluster.HostAddress(), "0"))
			harness.Must(t, err)
			cluster.Authority.Serve(t, server)
			if way.answer == nil {
				server.Close()
			}
			space := cluster.PlainSpace(t)
			cluster.Run.Install(t, fmt.Sprintf(onceConfiguration, strings.ToLower(way.name), server.URL, cluster.Authority.Base64(), space.Namespace))
			time.Sleep(5 * time.Second) // until the API server knows of it: the first request is the one that counts
			const manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: asked}}"
			result := space.TryKubectlInput(manifest, "create", "-f", "-")
			if way.fails == "" && result.Code != 0 || way.fails != "" && !strings.Contains(result.Stderr, way.fails) {
				t.Errorf("the admission ended with code %d and %q, want %q", result.Code, result.Stderr, way.fails)
			}
			if asked.Load() != way.asked {
				t.Errorf("the webhook was asked %d times, want %d", asked.Load(), way.asked)
			}
			t.Logf("asked %d times: %s%s", asked.Load(), result.Stdout, result.Stderr)
		})
	}
}

const onceConfiguration = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: asked-once-%s}
webhooks:
  - name: once.example.com
    clientConfig: {url: %q, caBundle: %s}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
    rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
    failurePolicy: Fail
    timeoutSeconds: 3
    sideEffects: None
    admissionReviewVersions: [v1]
`
