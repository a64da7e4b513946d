package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What the kubectl plugin is ordered to do, against a real API server, the real webhook and
// the real controller.

// commands runs the plugin, and checks its exit code and what it says.
func commands(t *testing.T, s *harness.Space) func(code int, args string, parts ...string) {
	t.Helper()
	ask := plugin(t, s)
	return func(code int, args string, parts ...string) {
		t.Helper()
		out, got := ask(strings.Fields(args)...)
		said := strings.Join(strings.Fields(out), " ")
		if got != code {
			t.Errorf("%s: exit code %d, want %d:\n%s", args, got, code, out)
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				t.Errorf("%s: want %q in\n%s", args, part, out)
			}
		}
		if code != 0 && strings.Contains(said, "in step and rolled out.") {
			t.Errorf("%s: it says in step:\n%s", args, out)
		}
	}
}

// podless is a Deployment without pods, which nobody would run here.
func podless(name string, sources ...string) string {
	return strings.Replace(deployment(name, sources...), "replicas: 1", "replicas: 0", 1)
}

func TestPlugin_WaitEndsWith(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	want := commands(t, s)
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/slow", "k", "1")
	s.Create(podless("d", "configmap/c"))
	s.Create(podless("held", "configmap/c"))
	s.Create(deployment("slow", "configmap/slow"))
	s.Create(strings.Replace(deployment("fails", "configmap/slow"), "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 2", 1))
	before := s.Settled("deployment/d", "deployment/held", "deployment/slow", "deployment/fails")
	want(0, "wait deployment/d --timeout=60s")
	want(0, "wait configmap/c --timeout=60s -o json", `"kind": "List"`)
	want(2, "wait deployment/fails --timeout=60s", "halted: deployment/fails is failed (ProgressDeadlineExceeded)")
	want(4, "wait deployment/slow --timeout=3s", "timed out after 3s", "0 are available")
	want(1, "wait deployment/nobody", "not found")

	s.SetPolicy("deployment/held", settings{"pause": "true"})
	s.Set("configmap/c", "k", "2")
	want(0, "wait deployment/d --timeout=60s") // which the controller has yet to roll
	s.WantRolls(before, rolls{"deployment/d": 1})
	want(3, "wait configmap/c --timeout=60s", "held: deployment/held is held: configstamp.dev/pause")

	// The reports tell users with the role view.
	viewers(t, s)
	want(0, "wait deployment/d --timeout=60s --as somebody --as-group viewers")
	want(3, "wait configmap/c --timeout=60s --as somebody --as-group viewers", "configstamp.dev/pause")

	refuseDryRuns(t, s)
	s.Eventually("waiting until dry runs are refused", func() error {
		if result := s.TryKubectl("patch", "deployment", "d", "--dry-run=server", "--patch={}"); result.Code == 0 {
			return fmt.Errorf("they are not")
		}
		return nil
	})
	want(5, "wait deployment/d --timeout=60s", "the dry run is refused", "no dry runs here")
	want(1, "roll deployment/held", "nothing was sent, as the dry run that asks the webhook was refused", "no dry runs here")
	s.WantRolls(before, rolls{"deployment/d": 1})
}

// refuseDryRuns installs somebody else's webhook for the Deployments of a space, which denies
// dry runs. (The API server refuses them by itself where a webhook declares sideEffects as
// Some, which admissionregistration.k8s.io/v1 accepts no more.)
func refuseDryRuns(t *testing.T, s *harness.Space) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		dry := review.Request.DryRun != nil && *review.Request.DryRun
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: !dry, Result: &metav1.Status{Message: "no dry runs here"}}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	r := run.Of(t)
	r.Authority.Serve(t, server)
	r.Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: refuses-dry-runs-%[1]s}
webhooks:
- name: refuses.example.com
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [UPDATE]}]
  sideEffects: NoneOnDryRun
  failurePolicy: Ignore
  admissionReviewVersions: [v1]
`, s.Namespace, server.URL, r.Authority.Base64()))
}

// pause, unpause, resume and roll.
func TestPlugin_Orders(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	want := commands(t, s)
	s.Set("configmap/c", "k", "1")
	for _, name := range []string{"d", "goes", "approved"} {
		s.Create(podless(name, "configmap/c"))
	}
	s.SetPolicy("deployment/goes", settings{"pause": "false"})
	s.SetPolicy("deployment/approved", settings{"mode": "observe"})
	before := s.Settled("deployment/d", "deployment/goes", "deployment/approved")

	namespace := "namespace/" + s.Namespace
	want(0, "pause "+namespace+" --for 1h --reason INC-42 --dry-run=server", "(server dry run)", "would write configstamp.dev/pause=")
	want(0, "pause "+namespace+" --for 1h --reason INC-42", "paused: it lasts until")
	nextSecond()
	s.Edit("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/goes": 1})
	want(3, "wait deployment/d --timeout=60s", "configstamp.dev/pause on the Namespace")

	// A person's order rolls in spite of the pause; under observe it is the approval.
	want(0, "roll deployment/d --dry-run=server", "(server dry run)")
	s.WantRolls(before, rolls{"deployment/goes": 1})
	want(0, "roll deployment/d", "rolled: it gets the new content of configmap/c")
	want(0, "roll deployment/d", "unchanged: it is in step")
	want(3, "wait deployment/approved --timeout=60s", "mode is observe")
	want(0, "roll deployment/approved", "restarted", "its mode is observe")
	s.WantRolls(before, rolls{"deployment/goes": 1, "deployment/d": 1, "deployment/approved": 1})
	wantStamp(t, s, "deployment/approved", "configmap/c")
	want(0, "wait deployment/approved --timeout=60s")
	want(0, "why deployment/approved", "configmap/c was", "kubectl rollout restart")

	// unpause takes back what pause wrote, and lets nothing else go.
	before = s.Counts()
	s.Edit("configmap/c", "k", "3")
	s.WantRolls(before, rolls{"deployment/goes": 1})
	want(0, "unpause "+namespace, "unpaused: it was paused by ", "(INC-42)")
	s.WantRolls(before, rolls{"deployment/goes": 1, "deployment/d": 1})
	s.Kubectl("annotate", namespace, "configstamp.dev/pause=true")
	want(0, "unpause "+namespace, "kept: configstamp.dev/pause=true was not written by the command pause (written by kubectl-annotate at 20", "kubectl annotate "+namespace+" configstamp.dev/pause-")
	s.Kubectl("annotate", namespace, "configstamp.dev/pause-")

	want(0, "resume configmap/c", "resumed: failures of rollouts that began until now do not halt it any more", "configstamp.dev/resume=")
	s.WantNoNote("configmap/c", "PolicyUnreadable")
}

// After a leaked password everything that uses the Secret rolls at once, whatever holds it, and one that fails stops none.
func TestPlugin_RollAll(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	want := commands(t, s)
	s.Set("secret/db", "password", "leaked")
	names := []string{"paused", "observed", "ignores", "out", "refused"}
	var all []string
	for _, name := range names {
		s.Create(podless(name, "secret/db"))
		all = append(all, "deployment/"+name)
	}
	s.Create(podless("other", "configmap/c"))
	s.SetPolicy("deployment/observed", settings{"mode": "observe"})
	s.SetPolicy("deployment/ignores", settings{"ignore": "secret/db"})
	s.Settled(all...)
	s.Kubectl("label", "deployment/out", "configstamp.dev/inject=disabled")
	s.SetPolicy("namespace", settings{"pause": "true"})
	s.Quiet()
	before := s.Counts()
	s.Set("secret/db", "password", "new")
	s.Unchanged(before)
	refuseWrites(t, s, "refused")

	want(0, "roll secret/db --all --dry-run=client", "deployment/paused rolls",
		"deployment/observed restarts", "deployment/ignores restarts: configstamp would not roll it for secret/db", "deployment/out restarts")
	want(1, "roll secret/db --all", "nothing was done, as there is no terminal")
	s.Unchanged(before)
	want(1, "roll secret/db --all --yes", "deployment/paused in namespace "+s.Namespace+" rolled: it gets the new content of secret/db",
		"error: deployment/refused in namespace "+s.Namespace, "not this one")
	s.WantRolls(before, rolls{"deployment/paused": 1, "deployment/observed": 1, "deployment/ignores": 1, "deployment/out": 1})
	wantStamp(t, s, "deployment/paused", "secret/db")
	wantStamp(t, s, "deployment/observed", "secret/db")

	want(1, "roll secret/bd --all --yes", `secrets "bd" not found`, "did you mean db?")
	viewers(t, s) // who may not list Secrets is not told their names
	want(1, "resume secret/bd --as somebody --as-group viewers", "forbidden")
	want(1, "pause deployment/pauset --as somebody --as-group viewers", "did you mean paused?")
	want(1, "pause deployment/paused --as somebody --as-group viewers", "you have no right to change it")
}

// refuseWrites has the API server deny updates of one Deployment of a space, dry runs aside.
func refuseWrites(t *testing.T, s *harness.Space, name string) {
	t.Helper()
	run.Of(t).Install(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuses-%[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [UPDATE]}]
  validations:
  - {expression: 'request.name != %[2]q || request.dryRun', message: not this one}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuses-%[1]s}
spec: {policyName: refuses-%[1]s, validationActions: [Deny]}
`, s.Namespace, name))
	s.Eventually("waiting until writes are refused", func() error {
		if result := s.TryKubectl("label", "deployment", name, fmt.Sprintf("try=%d", time.Now().UnixNano()), "--overwrite"); result.Code == 0 {
			return fmt.Errorf("they are not")
		}
		return nil
	})
}

// With the webhook stopped nothing is known, and nothing is sent.
func TestPlugin_WithoutUs(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	want := commands(t, s)
	s.Set("configmap/c", "k", "1")
	s.Create(podless("d", "configmap/c"))
	s.Settled("deployment/d")
	before := s.Counts()
	for _, webhook := range product.Webhooks {
		harness.Must(t, webhook.Stop())
	}
	want(5, "wait deployment/d --timeout=60s", "the webhook gave no answer")
	want(5, "wait configmap/c --timeout=5s", "the webhook gave no answer")
	want(1, "roll deployment/d", "nothing was sent: the webhook gave no answer")
	s.Unchanged(before)
}
