package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/e2e/harness"
)

// With optIn: all, a hundred workloads in a namespace without a label are adopted without a restart, and an edit
// rolls each of them once. What opts out, and kube-system, is left alone.
func TestOptIn_WholeCluster(t *testing.T) {
	product := run.Exclusive(t)
	plain, out, system := run.PlainSpace(t), run.PlainSpace(t), run.Existing(t, "kube-system")
	spaces := []*harness.Space{plain, out, system}
	set := func(value string) {
		for _, s := range spaces {
			s.Set("configmap/e2e", "k", value)
		}
	}
	bare := func(kind, name string) string {
		return strings.Replace(workload(kind, name, envFrom("configmap/e2e")), "replicas: 1", "replicas: 0", 1)
	}
	out.Label("disabled")
	set("1")
	var users []string
	baselines := map[string][]string{}
	for i := range 100 {
		kind, name := restamped[i%len(restamped)], fmt.Sprintf("w%02d", i)
		plain.Create(bare(kind, name))
		users = append(users, strings.ToLower(kind)+"/"+name)
		baselines[strings.ToLower(kind)+"/"+name] = []string{"configmap/e2e"}
	}
	plain.Create(labelled(bare("Deployment", "e2e"), "disabled"))
	out.Create(bare("Deployment", "e2e"))
	system.Create(bare("Deployment", "e2e"))
	t.Cleanup(func() { system.Delete("configmap/e2e"); system.Delete("deployment/e2e") })
	before := []harness.Counts{plain.Settled(append(slices.Clone(users), "deployment/e2e")...), out.Settled("deployment/e2e"), system.Settled("deployment/e2e")}
	untouched := func() {
		t.Helper()
		for _, s := range spaces {
			if object := s.Get("deployment/e2e"); len(harness.Stamps(object)) > 0 || len(harness.Baseline(object)) > 0 {
				t.Errorf("in %s: %s", s.Namespace, state(object))
			}
		}
		out.Unchanged(before[1])
		system.Unchanged(before[2])
	}

	for _, kind := range []string{"ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ConfigMap"} {
		run.Configure(t, kind, "e2e/testdata/whole-cluster.yaml")
	}
	options := harness.Usual()
	options.Webhook = append(options.Webhook, "--opt-in=all")
	options.Controller = append(options.Controller, "--opt-in=all", "--max-unsettled=200", "--max-unsettled-per-namespace=200")
	harness.Must(t, product.Restart(t.Context(), options))
	wantBaselines(t, plain, baselines)
	plain.Unchanged(before[0])
	untouched()

	set("2")
	plain.WantRolls(before[0], each(users, 1))
	for _, user := range users {
		wantStamp(t, plain, user, "configmap/e2e")
	}
	untouched()

	fresh := run.PlainSpace(t) // the webhook has to read the Namespace of the first workload
	fresh.Set("configmap/e2e", "k", "1")
	fresh.Create(bare("Deployment", "d"))
	wantStamp(t, fresh, "deployment/d", "configmap/e2e")
	out.Create(labelled(bare("Deployment", "in"), "enabled"))
	wantStamp(t, out, "deployment/in", "configmap/e2e")
	plain.Eventually("waiting for a warning of what an edit does", func() error {
		if is := plain.Kubectl("patch", "configmap", "e2e", "-p", `{"data":{"k":"3"}}`, "--dry-run=server"); !strings.Contains(is.Stderr, "configstamp: no pod of deployment/w00") {
			return fmt.Errorf("%s", is.Stderr)
		}
		return nil
	})

	// Our own policy lets nobody with our token change what has opted out.
	thief := run.Stolen(t)
	patch := func(s *harness.Space) error {
		return request{verb: "PATCH", path: "/apis/apps/v1/namespaces/" + s.Namespace + "/deployments/e2e", contentType: asMerge, body: "{}"}.send(t, thief)
	}
	for _, s := range spaces {
		wantRefused(t, patch(s), byOptIn)
	}

	ask := plugin(t, plain)
	if text, code := ask("users", "configmap/e2e"); code != 0 || !strings.Contains(text, "deployment/w00") || !strings.Contains(text, "its label configstamp.dev/inject is \"disabled\"") {
		t.Errorf("users ended with %d:\n%s", code, text)
	}
	text, code := ask("pause", "-A", "-o", "name", "--dry-run=server")
	for _, s := range spaces {
		if in := slices.Contains(strings.Fields(text), "namespace/"+s.Namespace); code != 0 || in != (s != system) { // with dialects, a workload of any other namespace may opt in
			t.Errorf("pause -A ended with %d, and %s is among them: %t\n%s", code, s.Namespace, in, text)
		}
	}
	if _, err := system.TryGet("configrollout/configmap-e2e"); !apierrors.IsNotFound(err) {
		t.Errorf("a report in kube-system: %v", err)
	}
}
