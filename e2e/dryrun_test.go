package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
	"github.com/configstamp/configstamp/internal/reason"
)

// question is kubectl's dry run of a rolling re-admission of a Deployment.
type question struct{ about, patch, manager, more string }

// ask is what it is answered with: the codes of the outcomes among the warnings.
func (q question) ask(t *testing.T, s *harness.Space) string {
	t.Helper()
	args := []string{"patch", "deployment", q.about, "--dry-run=server", "--patch={}", "--field-manager=configstamp"}
	if q.patch != "" {
		args[4] = "--patch=" + q.patch
	}
	if q.manager != "" {
		args[5] = "--field-manager=" + q.manager
	}
	if q.more != "" {
		args = append(args, q.more)
	}
	result := s.Kubectl(args...)
	var codes []string
	for _, warning := range result.Warnings() {
		if message, _ := reason.Parse(warning); message.Outcome() != reason.NoOutcome {
			codes = append(codes, message.Code)
			t.Logf("%s: %s", q.about, warning)
		}
	}
	return strings.Join(codes, " and ")
}

// TestDryRun_SaysWhatWouldComeOfAnOrder: by the real kubectl, each outcome that a cluster
// can produce, and the silences that mean unknown. The controllers are stopped: each
// workload stays as the test leaves it.
func TestDryRun_SaysWhatWouldComeOfAnOrder(t *testing.T) {
	product := run.ExclusiveInGate(t)
	for _, controller := range product.Controllers {
		harness.Must(t, controller.Stop())
	}
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/edited", "k", "1")
	for _, name := range []string{"same", "unreadable", "out"} {
		s.Create(deployment(name, "configmap/c"))
	}
	for _, name := range []string{"edited", "paused", "observed", "lacks"} {
		s.Create(deployment(name, "configmap/edited"))
	}
	s.Create(deployment("missing", "configmap/c", "secret/nowhere"))
	s.Create(deployment("later", "configmap/c", "secret/later"))
	s.Create(strings.Replace(deployment("large", "secret/later"), "metadata: {name: large,", fmt.Sprintf("metadata: {annotations: {example.com/pad: %q}, name: large,", strings.Repeat("x", 245730)), 1))
	const owner = "{apiVersion: serving.knative.dev/v1, kind: Revision, name: r, uid: 6c9f3f6e-0000-4000-8000-000000000001, controller: true}"
	s.Create(strings.Replace(deployment("owned", "configmap/c"), "metadata: {name: owned,", "metadata: {ownerReferences: ["+owner+"], name: owned,", 1))
	s.Set("configmap/edited", "k", "2")
	s.Set("secret/later", "k", "1")
	s.SetPolicy("deployment/unreadable", settings{"mode": "maybe"})
	s.SetPolicy("deployment/paused", settings{"pause": "true"})
	s.SetPolicy("deployment/observed", settings{"mode": "observe"})
	s.SetPolicy("deployment/lacks", settings{"also": "secret/later", "mode": "observe", "window": "never"})
	s.Kubectl("label", "deployment", "out", "configstamp.dev/inject=disabled")
	before := s.Settled("deployment/same", "deployment/edited")

	const scale = `{"spec":{"replicas":2}}`
	for _, test := range []struct {
		question
		want string
	}{
		{question{about: "same"}, "in-step"},
		{question{about: "edited"}, "would-roll"},
		{question{about: "paused"}, "would-roll"},
		{question{about: "same", patch: `{"spec":{"template":{"metadata":{"labels":{"version":"2"}}}}}`}, "would-roll"},
		{question{about: "later"}, "would-record"},
		{question{about: "observed"}, "observed"},
		{question{about: "missing"}, "missing"},
		{question{about: "unreadable"}, "unreadable"},
		{question{about: "lacks"}, "unreadable"}, // more restrictive than observed
		{question{about: "large"}, "oversize"},
		{question{about: "same", patch: `{"metadata":{"labels":{"configstamp.dev/inject":"disabled"}}}`}, "opted-out"},
		{question{about: "owned"}, "declined"},
		// Nobody is asked.
		{question{about: "out"}, ""},
		{question{about: "edited", more: "--subresource=scale", patch: scale}, ""},
		// Others are answered as ever.
		{question{about: "edited", manager: "kubectl-patch"}, ""},
		{question{about: "edited", manager: "configstamp-record"}, ""},
		{question{about: "same", manager: "kubectl-patch", patch: scale}, ""},
	} {
		if got := test.ask(t, s); got != test.want {
			t.Errorf("%+v: %q, want %q", test.question, got, test.want)
		}
	}
	for _, webhook := range product.Webhooks {
		webhook.Proxy.Add(proxy.Rule{Match: proxy.Matching("get,list", "configmaps,secrets"), Before: proxy.Fail(500, "InternalError", "made by the test")})
	}
	if got := (question{about: "same"}).ask(t, s); got != "deferred" {
		t.Errorf("where sources cannot be read: %q, want deferred", got)
	}
	s.Unchanged(before)

	keysBack(t, product)
	harness.Must(t, product.Stop()) // nobody is left who knows the key, or answers
	if got := (question{about: "edited"}).ask(t, s); got != "" {
		t.Errorf("where no webhook answers: %q, want nothing", got)
	}
	secrets, key := run.Of(t).Client.CoreV1().Secrets(harness.OwnNamespace), newKey(t)
	_, err := secrets.Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: keySecret}, Data: map[string][]byte{key.Name: key.Material}}, metav1.UpdateOptions{})
	harness.Must(t, err)
	for _, webhook := range product.Webhooks {
		webhook.Proxy.Clear()
		harness.Must(t, webhook.Start(product.Args(webhook)))
		harness.Must(t, webhook.WaitReady(t.Context()))
	}
	if got := (question{about: "edited"}).ask(t, s); got != "key-lost" {
		t.Errorf("where the key is lost: %q, want key-lost", got)
	}
	s.Unchanged(before)
}
