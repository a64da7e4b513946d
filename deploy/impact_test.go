package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

type validating = admissionregistrationv1.ValidatingWebhookConfiguration

// noImpact are values without warnings of what an edit rolls out.
var noImpact = []string{"impact.configMaps=false"}

// A warning is never worth a write: whatever is set, nobody waits longer than a second, and nobody is denied.
func TestImpact_HoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		for _, configuration := range all[*validating](rendered(t, append(slices.Clone(values), "webhook.failurePolicy=Fail", "webhook.timeoutSeconds=30")...)) {
			for _, webhook := range configuration.Webhooks {
				if *webhook.FailurePolicy != admissionregistrationv1.Ignore || *webhook.TimeoutSeconds != 1 || *webhook.SideEffects != admissionregistrationv1.SideEffectClassNone {
					t.Errorf("%s, %s: failurePolicy %s, %d s, sideEffects %s", name, webhook.Name, *webhook.FailurePolicy, *webhook.TimeoutSeconds, *webhook.SideEffects)
				}
				resource, _, _ := strings.Cut(webhook.Name, ".")
				want := []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{"UPDATE", "DELETE"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}, Scope: new(admissionregistrationv1.NamespacedScope)},
				}}
				if diff := cmp.Diff(want, webhook.Rules); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", name, webhook.Name, diff)
				}
			}
		}
	}
}

// Which namespaces are asked about, for each of the two resources.
func TestImpact_IsAskedWhereNamespacesHaveOptedIn(t *testing.T) {
	t.Parallel()
	const cluster, listed = "shop", "shop, b"
	for values, want := range map[string][2]string{ // where ConfigMaps are asked about, and Secrets
		"":                    {cluster, ""},
		"impact.secrets=true": {cluster, cluster},
		"impact.configMaps=false,impact.secrets=true": {"", cluster},
		"optIn=all":                               {"shop, b, d", ""},
		"optIn=all,excludedNamespaces={shop}":     {"b, d", ""},
		"excludedNamespaces={shop}":               {"kube-system", ""},
		"namespaces={shop,b}":                     {listed, ""},
		"namespaces={shop,b},impact.secrets=true": {listed, listed},
		"namespaces={shop,b},dialects={wave},certificates.mode=self-managed": {listed, ""},
	} {
		objects := rendered(t, values)
		kinds := []string{}
		for i, kind := range []string{"configmaps", "secrets"} {
			if want[i] != "" {
				kinds = append(kinds, kind)
			}
		}
		for _, container := range only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers {
			if answers := "--impact-kinds=" + strings.Join(kinds, ","); slices.Contains(container.Args, answers) != (container.Name == "controller") {
				t.Errorf("%s: %s has %q, want %s", values, container.Name, container.Args, answers)
			}
			excludes := slices.ContainsFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, "--excluded-namespaces=") })
			if excludes == strings.Contains(values, "namespaces={shop,b}") {
				t.Errorf("%s: %s excludes namespaces: %t", values, container.Name, excludes)
			}
		}
		webhooks := only[*validating](t, objects).Webhooks
		if len(webhooks) != 2 || webhooks[0].Name != "configmaps.configstamp.dev" || webhooks[1].Name != "secrets.configstamp.dev" {
			t.Fatalf("%s: the entries are others: %v", values, webhooks)
		}
		for i, webhook := range webhooks {
			var in []string
			for _, namespace := range []struct{ name, inject string }{
				{"shop", "enabled"}, {"b", ""}, {"c", "disabled"}, {"d", "enable"}, {"kube-system", "enabled"}, {"configstamp", "enabled"},
			} {
				set := labels.Set{corev1.LabelMetadataName: namespace.name}
				if namespace.inject != "" {
					set["configstamp.dev/inject"] = namespace.inject
				}
				selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
				if err != nil {
					t.Fatal(err)
				}
				if selector.Matches(set) {
					in = append(in, namespace.name)
				}
			}
			if got := strings.Join(in, ", "); got != want[i] {
				t.Errorf("%q: %s in %q, want %q", values, webhook.Name, got, want[i])
			}
		}
	}
}

// The way of a question: the Service, a port of the controller, a process that listens there and has
// a certificate, which whoever keeps the caBundle has signed.
func TestImpact_IsServedWhereItIsAsked(t *testing.T) {
	t.Parallel()
	for mode, flag := range map[string]string{"cert-manager": "--tls-cert-file=/certificate/tls.crt", "self-managed": "--self-managed-certificate"} {
		objects := rendered(t, "certificates.mode="+mode, "nameOverride=stamper")
		spec := only[*appsv1.Deployment](t, objects).Spec.Template.Spec
		controller, service := &spec.Containers[1], only[*corev1.Service](t, objects)
		for _, webhook := range only[*validating](t, objects).Webhooks {
			asks := webhook.ClientConfig.Service
			at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *asks.Port })
			if at < 0 || asks.Name != service.Name || *asks.Path != "/impact" {
				t.Fatalf("%s: %v is asked, and there is %v", mode, asks, service.Spec)
			}
			if port := portOf(controller, service.Spec.Ports[at].TargetPort); port != 8444 || port != listens(controller, "--impact-address") {
				t.Errorf("%s: port %d is asked, and the controller listens on %d", mode, port, listens(controller, "--impact-address"))
			}
		}
		for _, want := range []string{flag, "--name=" + only[*validating](t, objects).Name} {
			if !slices.Contains(controller.Args, want) {
				t.Errorf("%s: no %s in %q", mode, want, controller.Args)
			}
		}
		if mounted := len(controller.VolumeMounts) == 1; mounted != (mode == "cert-manager") {
			t.Errorf("%s: the controller mounts %v", mode, controller.VolumeMounts)
		}
	}
}

// What is not asked for is not there, nor where values are those of an earlier chart.
func TestImpact_OffLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{noImpact, {"impact=null", "pins=null"}, {"impact.configMaps=false", "certificates.mode=self-managed"}} {
		objects := rendered(t, values...)
		controller := &only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[1]
		if len(all[*validating](objects)) > 0 || len(only[*corev1.Service](t, objects).Spec.Ports) != 1 || len(controller.Ports) != 1 || len(controller.VolumeMounts) > 0 {
			t.Errorf("%v: something of it is there: %v", values, controller)
		}
		for _, arg := range controller.Args {
			for _, not := range []string{"--impact", "--self-managed", "--tls"} {
				if strings.HasPrefix(arg, not) {
					t.Errorf("%v: the controller has %s", values, arg)
				}
			}
		}
		if granted(objects, "validatingwebhookconfigurations") != nil {
			t.Errorf("%v: there is a right to validatingwebhookconfigurations", values)
		}
	}
}

// granted are the verbs for a resource, by the namespace of the Role; "" is a ClusterRole's.
func granted(objects []runtime.Object, resource string) map[string][]string {
	var found map[string][]string
	add := func(namespace string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			if slices.Contains(rule.Resources, resource) {
				if found == nil {
					found = map[string][]string{}
				}
				found[namespace] = append(found[namespace], rule.Verbs...)
			}
		}
	}
	for _, role := range all[*rbacv1.ClusterRole](objects) {
		add("", role.Rules)
	}
	for _, role := range all[*rbacv1.Role](objects) {
		add(role.Namespace, role.Rules)
	}
	return found
}

// Warnings take no right but that to have our own certificate trusted, and the policy
// holds us to that.
func TestImpact_TakesNoRightButToBeTrusted(t *testing.T) {
	t.Parallel()
	const resource = "validatingwebhookconfigurations"
	for name, test := range map[string]struct {
		values []string
		want   map[string][]string
	}{
		"cert-manager":             {nil, nil},
		"Secrets":                  {[]string{"impact.secrets=true"}, nil},
		"self-managed":             {[]string{"certificates.mode=self-managed"}, map[string][]string{"": {"list", "watch", "patch"}}},
		"self-managed, namespaced": {[]string{"certificates.mode=self-managed", "namespaces={a}"}, map[string][]string{"": {"patch"}}},
	} {
		with, without := rendered(t, test.values...), rendered(t, append(slices.Clone(test.values), "impact.configMaps=false", "impact.secrets=false")...)
		if diff := cmp.Diff(test.want, granted(with, resource)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		rights := func(objects []runtime.Object) (rules []rbacv1.PolicyRule) {
			for _, role := range all[*rbacv1.ClusterRole](objects) {
				rules = append(rules, role.Rules...)
			}
			for _, role := range all[*rbacv1.Role](objects) {
				rules = append(rules, role.Rules...)
			}
			for i := range rules {
				rules[i].Resources = slices.DeleteFunc(rules[i].Resources, func(one string) bool { return one == resource })
			}
			return rules
		}
		if diff := cmp.Diff(rights(without), rights(with)); diff != "" {
			t.Errorf("%s: there are more rights with warnings (-without +with):\n%s", name, diff)
		}
		for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](with) {
			if guards := policy.Spec.MatchConstraints.ResourceRules[0].Resources; policy.Name == "configstamp-certificate" && !slices.Contains(guards, resource) {
				t.Errorf("%s: the policy holds us to nothing but %v", name, guards)
			}
		}
	}
}
