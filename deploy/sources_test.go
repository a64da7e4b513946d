package deploy

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Both processes speak the same TLS, the newest by default.
func TestTheOldestTLSIsSetForBothProcesses(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{"": false, "certificates.minTLSVersion=1.3": false, "certificates.minTLSVersion=1.2": true, "certificates.minTLSVersion=1.2,certificates.mode=self-managed": true} {
		for _, container := range only[*appsv1.Deployment](t, rendered(t, values)).Spec.Template.Spec.Containers {
			if got := slices.Contains(container.Args, "--tls-min-version=1.2"); got != want {
				t.Errorf("%q: %s has %v", values, container.Name, container.Args)
			}
		}
	}
}

// Who wants no right to read Secrets has none but to configstamp's own.
func TestWithConfigMapsAloneNoSecretCanBeRead(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		if slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, "impact.secrets=true") }) {
			continue
		}
		objects := rendered(t, append(slices.Clone(values), "sources={configmaps}")...)
		for _, role := range all[*rbacv1.ClusterRole](objects) {
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "*") {
					t.Errorf("%s: ClusterRole %s has %v", name, role.Name, rule)
				}
			}
		}
		for _, role := range all[*rbacv1.Role](objects) {
			for _, rule := range role.Rules {
				own := role.Namespace == "configstamp" && (len(rule.ResourceNames) > 0 || slices.Equal(rule.Verbs, []string{"create"}))
				if slices.Contains(rule.Resources, "secrets") && !own || slices.Contains(rule.Resources, "*") {
					t.Errorf("%s: Role %s of %s has %v", name, role.Name, role.Namespace, rule)
				}
			}
		}
		for _, container := range only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers {
			if !slices.Contains(container.Args, "--sources=configmaps") {
				t.Errorf("%s: %s has %v", name, container.Name, container.Args)
			}
		}
	}
}
