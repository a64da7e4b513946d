package e2e

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Users see the defaults of the cluster, and nothing else of configstamp's namespace.
func TestSettings_EveryUserMayReadTheDefaultsOfTheCluster(t *testing.T) {
	t.Parallel()
	as := func(user, group string, args ...string) harness.Result {
		t.Helper()
		result, err := run.Kubectl("", append([]string{"--namespace=" + harness.OwnNamespace, "--as=" + user, "--as-group=" + group}, args...)...)
		harness.Must(t, err)
		return result
	}
	read := []string{"get", "configmap", "configstamp-settings", "-o", `jsonpath={.data.settle} {.data.restart-on} {.data.max-unsettled}`}
	if got := as("jane", "system:authenticated", read...); got.Stdout != "2s all default" {
		t.Errorf("a user reads %q: %s", got.Stdout, got.Stderr)
	}
	for _, args := range [][]string{{"get", "configmaps"}, {"get", "configmap", "kube-root-ca.crt"}, {"get", "secret", keySecret}, {"delete", "configmap", "configstamp-settings", "--dry-run=server"}} {
		if got := as("jane", "system:authenticated", args...); got.Code == 0 || !strings.Contains(got.Stderr, "Forbidden") {
			t.Errorf("a user may %s: %s%s", strings.Join(args, " "), got.Stdout, got.Stderr)
		}
	}
	if got := as("system:anonymous", "system:unauthenticated", read...); got.Code == 0 {
		t.Errorf("somebody whom nobody knows reads %q", got.Stdout)
	}
}
