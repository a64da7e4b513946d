// Package namespaced proves what configstamp does, and what it cannot do, where
// the chart's namespaces are given: its rights are Roles in these, and nothing of
// the cluster but a patch of its own webhook configurations. It has a cluster of
// its own; package e2e has the wide rights.
package namespaced

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/rights"
)

var run *harness.Run

func TestMain(m *testing.M) {
	flags := []string{"--namespaces=team-a,team-b"}
	wanted := harness.Wanted{
		Manifest:   "namespaced.yaml",
		Namespaces: []string{"team-a", "team-b", "team-c"},
		Options:    harness.Options{Settle: harness.Settle, Webhook: flags, Controller: flags},
		Audit: &harness.Audit{Except: []rights.Exception{
			{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Why: "certs says that it looks now and then where it may not watch"},
			{Verb: "watch", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Why: "the same"},
			{Verb: "list", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Why: "the same"},
			{Verb: "watch", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Why: "the same"},
			{Namespace: "gone", Why: "TestANamespaceThatIsGoneKeepsNoOtherWaiting"},
		}},
	}
	os.Exit(wanted.Main(m, func(r *harness.Run) error { run = r; return nil }))
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-app}
spec:
  selector: {matchLabels: {app: web-app}}
  template:
    metadata: {labels: {app: web-app}}
    spec:
      containers:
      - name: app
        image: registry.example/app:1
        envFrom: [{configMapRef: {name: web-message}}, {secretRef: {name: web-password}}]
`

func TestAnEditRollsItsUserInEachNamespace(t *testing.T) {
	for _, namespace := range []string{"team-a", "team-b"} {
		t.Run(namespace, func(t *testing.T) {
			s := run.Existing(t, namespace) // which nobody has labelled: the list opts in
			s.Set("configmap/web-message", "MESSAGE", "hello world")
			s.Set("secret/web-password", "PASSWORD", "hunter2")
			s.Apply(web)
			before := s.Settled("deployment/web-app")
			s.Set("configmap/web-message", "MESSAGE", "hello KodeKloud")
			s.WantRolls(before, harness.Rolls{"deployment/web-app": 1})
			s.Set("secret/web-password", "PASSWORD", "hunter3")
			s.WantRolls(before, harness.Rolls{"deployment/web-app": 2})
			for _, source := range []string{"configmap/web-message", "secret/web-password"} {
				if got, want := s.Stamp("deployment/web-app", source), s.Digest(source); got != want {
					t.Errorf("stamp of %s %q, want %q", source, got, want)
				}
			}
			s.WantNote("deployment/web-app", "ConfigChanged: secret/web-password changed: rolling out")
			s.Kubectl("create", "rolebinding", "reads", "--role=configstamp-report-view", "--user=somebody")
			s.Eventually("waiting for the report on an edit", func() error {
				is := s.TryKubectl("get", "configrollout", "secret-web-password", "--as=somebody", "-o", "jsonpath={.status.total} {.status.workloads[*].names[*]}")
				if is.Stdout != "1 deployment/web-app" {
					return errors.New(is.Stdout + is.Stderr)
				}
				return nil
			})
		})
	}
}

// What the API server says of another namespace to the service account's own token.
func TestNothingElsewhereCanBeRead(t *testing.T) {
	s := run.Existing(t, "team-c")
	s.Set("secret/web-password", "PASSWORD", "hunter2")
	thief := run.Stolen(t).Discovery().RESTClient()
	for _, path := range []string{
		"/api/v1/namespaces/team-c/secrets/web-password", "/api/v1/namespaces/team-c/secrets", "/api/v1/namespaces/team-c/secrets?watch=true&timeoutSeconds=1",
		"/api/v1/namespaces/team-c/configmaps", "/api/v1/namespaces/team-c/pods", "/apis/apps/v1/namespaces/team-c/deployments",
		"/api/v1/namespaces/configstamp/secrets", "/api/v1/namespaces/kube-system/secrets",
		"/api/v1/secrets", "/api/v1/secrets?watch=true&timeoutSeconds=1", "/api/v1/configmaps", "/api/v1/pods", "/apis/apps/v1/deployments",
		"/api/v1/namespaces", "/api/v1/namespaces/team-c", "/api/v1/nodes",
		"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/configstamp",
	} {
		err := thief.Get().RequestURI(path).Do(t.Context()).Error()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "`+harness.Account+`" cannot `) {
			t.Errorf("GET %s: %v, want it forbidden by the lack of a role", path, err)
		}
	}
	err := thief.Verb(http.MethodPatch).RequestURI("/apis/apps/v1/namespaces/team-c/deployments/web-app").
		SetHeader("Content-Type", "application/merge-patch+json").Body([]byte("{}")).Do(t.Context()).Error()
	if !apierrors.IsForbidden(err) {
		t.Errorf("an empty patch elsewhere: %v, want it forbidden", err)
	}
	run.Existing(t, "team-a").Set("secret/web-password", "PASSWORD", "hunter2")
	harness.Must(t, thief.Get().RequestURI("/api/v1/namespaces/team-a/secrets/web-password").Do(t.Context()).Error()) // so that it was not the paths
}

// The list of namespaces opts in, and no label does: whatever rights the account has.
func TestOurTokenRestartsNothingElsewhere(t *testing.T) {
	thief := run.Stolen(t).Discovery().RESTClient()
	patched := func(s *harness.Space) error {
		return thief.Verb(http.MethodPatch).RequestURI("/apis/apps/v1/namespaces/"+s.Namespace+"/deployments/stolen").
			SetHeader("Content-Type", "application/merge-patch+json").Body([]byte(`{}`)).Do(t.Context()).Error()
	}
	const refused = "configstamp may change workloads that are opted in, and no others"
	listed, other := run.Existing(t, "team-a"), run.Existing(t, "team-c")
	listed.Apply(strings.ReplaceAll(web, "web-app", "stolen"))
	harness.Must(t, patched(listed))
	listed.Patch("deployment/stolen", `{"metadata":{"labels":{"configstamp.dev/inject":"disabled"}}}`)
	if err := patched(listed); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refused) {
		t.Errorf("what has opted out: %v, want it forbidden by the policy", err)
	}

	other.Apply(strings.ReplaceAll(web, "web-app", "stolen"))
	other.Patch("deployment/stolen", `{"metadata":{"labels":{"configstamp.dev/inject":"enabled"}}}`)
	other.Kubectl("create", "rolebinding", "too-much", "--clusterrole=admin", "--serviceaccount=configstamp:configstamp")
	defer other.Kubectl("delete", "rolebinding", "too-much")
	other.Eventually("waiting until the role counts", func() error {
		err := patched(other)
		if err == nil || strings.Contains(err.Error(), refused) {
			return nil
		}
		return err
	})
	if err := patched(other); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace, with a role for it: %v, want it forbidden by the policy", err)
	}
}

// The Role of a namespace goes with it; a restart of ours comes later.
func TestANamespaceThatIsGoneKeepsNoOtherWaiting(t *testing.T) {
	product := run.Exclusive(t)
	flags := []string{"--namespaces=team-b,gone"}
	harness.Must(t, product.Restart(t.Context(), harness.Options{Settle: harness.Settle, Webhook: flags, Controller: flags}))
	s := run.Existing(t, "team-b")
	s.Set("configmap/left", "MESSAGE", "1")
	s.Apply(strings.NewReplacer("web-app", "left", "web-message", "left").Replace(web))
	before := s.Settled("deployment/left")
	s.Set("configmap/left", "MESSAGE", "2")
	s.WantRolls(before, harness.Rolls{"deployment/left": 1})
}

// A patch of our own webhook configuration is enough to have our certificate trusted.
func TestACertificateOfOurOwnIsTrusted(t *testing.T) {
	product := run.Exclusive(t)
	run.TrustAgain(t)
	options := harness.Options{Settle: harness.Settle, Webhook: []string{"--namespaces=team-a,team-b"}, Controller: []string{"--namespaces=team-a,team-b"}}
	harness.Must(t, product.Restart(t.Context(), options.SelfManaged()))
	run.Existing(t, "team-a").EventuallyIn(time.Minute, "waiting until our certificate is trusted", func() error { return run.Trusted(t.Context()) })
}
