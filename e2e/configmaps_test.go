package e2e

import (
	"context"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configstamp/configstamp/e2e/harness"
)

// With ConfigMaps alone no right to read Secrets is needed. Workloads that read Secrets are
// stamped by their ConfigMaps; a Secret that changes, or is missing, makes no difference; and
// who was stamped before does not restart.
func TestSources_ConfigMapsAlone(t *testing.T) {
	product := run.Exclusive(t)
	s := run.Space(t)
	s.Set("configmap/c", "k", "1")
	s.Set("secret/s", "k", "1")
	s.Create(workload("Deployment", "old", envFrom("configmap/c", "secret/s")))
	wantStamps(t, s, "deployment/old", "configmap/c", "secret/s")
	before := s.Settled("deployment/old")

	withoutSecrets(t, run.Of(t).Client)
	options, flag := harness.Usual(), "--sources=configmaps"
	options.Webhook, options.Controller = append(options.Webhook, flag), append(options.Controller, flag)
	harness.Must(t, product.Restart(t.Context(), options))
	s.Unchanged(before)
	s.Create(workload("Deployment", "new", envFrom("configmap/c", "secret/s")) + "---\n" + workload("Deployment", "lacks", envFrom("configmap/c", "secret/missing")))
	before = s.Settled("deployment/new", "deployment/lacks")
	for _, name := range []string{"deployment/new", "deployment/lacks"} {
		wantStamps(t, s, name, "configmap/c")
	}
	s.Edit("secret/s", "k", "2")
	s.Unchanged(before)
	s.Edit("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/old": 1, "deployment/new": 1, "deployment/lacks": 1})
	wantStamp(t, s, "deployment/old", "configmap/c")
}

// withoutSecrets takes the right to read Secrets away to the end of the test.
func withoutSecrets(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	roles := client.RbacV1().ClusterRoles()
	put := func(change func(*rbacv1.ClusterRole)) {
		role, err := roles.Get(context.Background(), "configstamp", metav1.GetOptions{})
		harness.Must(t, err)
		change(role)
		_, err = roles.Update(context.Background(), role, metav1.UpdateOptions{})
		harness.Must(t, err)
	}
	var were []rbacv1.PolicyRule
	put(func(role *rbacv1.ClusterRole) {
		were = role.DeepCopy().Rules
		for i := range role.Rules {
			role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(resource string) bool { return resource == "secrets" })
		}
	})
	t.Cleanup(func() { put(func(role *rbacv1.ClusterRole) { role.Rules = were }) })
}
