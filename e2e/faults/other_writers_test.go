package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// beside installs somebody's mutating webhook on Deployments of a namespace, of a
// name that sorts before or after ours. It injects a container's variable, as
// sidecar injectors do, and asks to be called again.
func beside(t *testing.T, namespace, name string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID    string
				Object unstructured.Unstructured
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := map[string]any{"uid": review.Request.UID, "allowed": true}
		annotations := harness.TemplateAnnotations(&review.Request.Object)
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
	court.Run.Authority.Serve(t, server)
	court.Run.Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[4]s-%[1]s}
webhooks:
- name: %[4]s.example.com
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE, UPDATE]}]
  sideEffects: None
  failurePolicy: Ignore
  reinvocationPolicy: IfNeeded
  admissionReviewVersions: [v1]
`, namespace, server.URL, court.Run.Authority.Base64(), name))
	time.Sleep(1500 * time.Millisecond) // the API server reads it now and then
}

func TestOtherWebhooksBeforeAndAfterOurs(t *testing.T) {
	product, trial := scenario(t)
	trial.Others = true
	beside(t, trial.Namespace, "aaa")
	beside(t, trial.Namespace, "zzz")
	fanOut(t, trial, 8)
	for i := range 4 {
		harness.Must(t, trial.Set("configmap/c", value(i+1)))
		harness.Must(t, trial.Put(faults.Workload("Deployment", "w0", fmt.Sprint(i/2), faults.Reads("configmap/c")...)))
		if i == 2 {
			end := court.Outages.Begin()
			harness.Must(t, product.Webhooks[0].Kill())
			harness.Must(t, product.Start(t.Context()))
			end()
		}
		time.Sleep(time.Second)
	}
	trial.Judge(t, soon)
}

// GitOps tools write the same manifests every second, in three ways, while their
// sources are edited and a webhook dies.
func TestGitOpsEverySecond(t *testing.T) {
	product, trial := scenario(t)
	harness.Must(t, trial.Set("configmap/c", value(0)))
	manifests := map[string]*unstructured.Unstructured{}
	for _, way := range []string{"applied", "put", "kubectl"} {
		manifests[way] = faults.Workload("Deployment", way, "1", faults.Reads("configmap/c")...)
	}
	s := court.Run.Existing(t, trial.Namespace)
	text, err := manifests["kubectl"].MarshalJSON()
	harness.Must(t, err)
	harness.Must(t, trial.Apply(manifests["applied"]))
	harness.Must(t, trial.Create(manifests["put"]))
	harness.Must(t, trial.Create(manifests["kubectl"]))
	settled(t, trial)
	var tools sync.WaitGroup
	rounds := 15
	if testing.Short() {
		rounds = 6
	}
	for _, write := range []func() error{
		func() error { return trial.Apply(manifests["applied"]) },
		func() error { return trial.Put(manifests["put"]) },
		func() error {
			began := time.Now()
			result := s.TryKubectlInput(string(text), "apply", "-f", "-", "-o", "jsonpath={.metadata.resourceVersion}")
			if result.Code != 0 {
				return fmt.Errorf("kubectl apply: %s", result.Stderr)
			}
			return trial.Note("kubectl apply", result.Stdout, began)
		},
	} {
		tools.Go(func() {
			for range rounds {
				if err := write(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		})
	}
	for i := range rounds / 3 {
		harness.Must(t, trial.Set("configmap/c", value(i+1)))
		time.Sleep(2 * time.Second)
		if i == 1 {
			end := court.Outages.Begin()
			harness.Must(t, product.Webhooks[0].Kill())
			harness.Must(t, product.Start(t.Context()))
			end()
		}
	}
	tools.Wait()
	trial.Judge(t, soon)
}
