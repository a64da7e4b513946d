package deploy

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// What is published is what the arguments give: TestPublishedSettings… of cmd/configstamp
// has the program itself read them. This is who may read it.
func TestEveryUserMayReadThePublishedSettingsAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{nil, {"namespaces={a,b}"}, {"nameOverride=x"}} {
		objects := rendered(t, values...)
		var name string
		for _, settings := range all[*corev1.ConfigMap](objects) {
			name = settings.Name
		}
		if !strings.HasSuffix(name, "-settings") || values == nil && name != "configstamp-settings" {
			t.Fatalf("%v: the ConfigMap is called %q", values, name)
		}
		given := 0
		for _, binding := range all[*rbacv1.RoleBinding](objects) {
			for _, subject := range binding.Subjects {
				if subject.Kind == rbacv1.ServiceAccountKind {
					continue
				}
				given++
				want := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}
				if subject != want || binding.Namespace != "configstamp" || binding.RoleRef != (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}) {
					t.Errorf("%v: %v in %s may %v", values, subject, binding.Namespace, binding.RoleRef)
				}
			}
		}
		rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"get"}}}
		for _, role := range all[*rbacv1.Role](objects) {
			if role.Name == name && !reflect.DeepEqual(role.Rules, rules) {
				t.Errorf("%v: everybody may %v", values, role.Rules)
			}
		}
		if given != 1 {
			t.Errorf("%v: %d rights are given to others than us", values, given)
		}
		for _, binding := range all[*rbacv1.ClusterRoleBinding](objects) {
			for _, subject := range binding.Subjects {
				if subject.Kind != rbacv1.ServiceAccountKind {
					t.Errorf("%v: %s is bound to %v", values, binding.Name, subject)
				}
			}
		}
	}
}

func TestSettingsNeedNotBePublished(t *testing.T) {
	t.Parallel()
	manifest, complaint := template(t, "settings.published=false")
	if complaint != "" || strings.Contains(string(manifest), "configstamp-settings") || strings.Contains(string(manifest), "system:authenticated") {
		t.Errorf("they are there all the same: %s", complaint)
	}
}

func TestPublishedSettingsNameNoNamespace(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{{"namespaces={secret-project}"}, {"excludedNamespaces={secret-project}"}} {
		for _, settings := range all[*corev1.ConfigMap](rendered(t, values...)) {
			for key, value := range settings.Data {
				if strings.Contains(value, "secret-project") {
					t.Errorf("%v: %s: %q", values, key, value)
				}
			}
		}
	}
}
