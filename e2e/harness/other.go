package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OtherWebhook installs somebody else's mutating webhook for the Deployments of
// a namespace, which is called before ours or after it as its name sorts. It adds
// the annotation <name>/was to pod templates that lack it, wants to be called
// again when others change something, and is at work when this returns.
func (r *Run) OtherWebhook(t testing.TB, namespace, name string) {
	t.Helper()
	r = r.Of(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review struct {
			Request struct {
				UID    string
				Object unstructured.Unstructured
			}
		}
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := map[string]any{"uid": review.Request.UID, "allowed": true}
		annotations := TemplateAnnotations(&review.Request.Object)
		if annotations[name+"/was"] == "" {
			patch := fmt.Sprintf(`[{"op":"add","path":"/spec/template/metadata/annotations/%s~1was","value":"here"}]`, name)
			if annotations == nil {
				patch = fmt.Sprintf(`[{"op":"add","path":"/spec/template/metadata/annotations","value":{"%s/was":"here"}}]`, name)
			}
			response["patch"], response["patchType"] = []byte(patch), "JSONPatch"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
	}))
	r.Authority.Serve(t, server)
	r.Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[4]s-%[1]s}
webhooks:
- name: %[4]s.example.com
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE]}]
  sideEffects: None
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  admissionReviewVersions: [v1]
`, namespace, server.URL, r.Authority.Base64(), name))
	probe := r.Existing(t, namespace)
	probe.Eventually("waiting until "+name+" is called", func() error {
		created := probe.DryCreate(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: probe}
spec:
  selector: {matchLabels: {app: probe}}
  template: {metadata: {labels: {app: probe}}, spec: {containers: [{name: c, image: example.com/c}]}}
`)
		if TemplateAnnotations(created)[name+"/was"] == "" {
			return errors.New("it is not")
		}
		return nil
	})
}
