package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// podEntry is the one that is asked about Pods that pin.
func podEntry(t *testing.T, objects []runtime.Object) *admissionregistrationv1.MutatingWebhook {
	t.Helper()
	entries := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, objects).Webhooks
	at := slices.IndexFunc(entries, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == "pins.configstamp.dev" })
	if at < 0 {
		t.Fatal("there is no entry for Pods")
	}
	return &entries[at]
}

// Whatever is set, no Pod waits longer than a second, and none is denied.
func TestPins_HoldNoPodUp(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		webhook := podEntry(t, rendered(t, append(slices.Clone(values), "pins.enabled=true", "webhook.failurePolicy=Fail", "webhook.timeoutSeconds=30")...))
		if *webhook.FailurePolicy != admissionregistrationv1.Ignore || *webhook.TimeoutSeconds != 1 || *webhook.ReinvocationPolicy != admissionregistrationv1.IfNeededReinvocationPolicy || *webhook.SideEffects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("%s: failurePolicy %s, %d s, reinvocationPolicy %s, sideEffects %s", name, *webhook.FailurePolicy, *webhook.TimeoutSeconds, *webhook.ReinvocationPolicy, *webhook.SideEffects)
		}
		want := []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"CREATE"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: new(admissionregistrationv1.NamespacedScope)},
		}}
		if diff := cmp.Diff(want, webhook.Rules); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A workload can opt in alone, so Pods are looked at wherever configstamp serves anything.
func TestPins_AreAskedForWhereWorkloadsAreServed(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"pins.enabled=true":                                  "shop, b, c",
		"pins.enabled=true,excludedNamespaces={b}":           "shop, c, kube-system",
		"pins.enabled=true,namespaces={shop,b}":              "shop, b",
		"pins.enabled=true,optIn=all":                        "shop, b, c",
		"pins.enabled=true,optIn=all,excludedNamespaces={b}": "shop, c",
	} {
		selector, err := metav1.LabelSelectorAsSelector(podEntry(t, rendered(t, values)).NamespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		var in []string
		for _, namespace := range []struct{ name, inject string }{{"shop", "enabled"}, {"b", ""}, {"c", "disabled"}, {"kube-system", ""}, {"configstamp", "enabled"}} {
			if selector.Matches(labels.Set{corev1.LabelMetadataName: namespace.name, "configstamp.dev/inject": namespace.inject}) {
				in = append(in, namespace.name)
			}
		}
		if got := strings.Join(in, ", "); got != want {
			t.Errorf("%q: asked about Pods in %q, want %q", values, got, want)
		}
	}
}

// What makes snapshots says so, or a dry run would be refused or make some.
func TestPins_SideEffectsAreTold(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]admissionregistrationv1.SideEffectClass{
		"": admissionregistrationv1.SideEffectClassNone, "pins.enabled=true": admissionregistrationv1.SideEffectClassNoneOnDryRun,
	} {
		for _, webhook := range only[*admissionregistrationv1.MutatingWebhookConfiguration](t, rendered(t, values)).Webhooks {
			if webhook.Name != "pins.configstamp.dev" && *webhook.SideEffects != want {
				t.Errorf("%q: %s has sideEffects %s, want %s", values, webhook.Name, *webhook.SideEffects, want)
			}
		}
	}
}

// What no value asks for is not given.
func TestPins_TakeRightsWhereTheyAreOn(t *testing.T) {
	t.Parallel()
	read := []string{"list", "watch", "get"}
	snapshots := append(slices.Clone(read), "create", "delete")
	for name, test := range map[string]struct {
		values     []string
		maps, jobs map[string][]string
	}{
		"off":             {nil, map[string][]string{"": read}, nil},
		"on":              {[]string{"pins.enabled=true"}, map[string][]string{"": snapshots}, map[string][]string{"": {"list"}}},
		"off, namespaced": {[]string{"namespaces={a,b}"}, map[string][]string{"a": read, "b": read}, nil},
		"on, namespaced": {[]string{"namespaces={a,b}", "pins.enabled=true"},
			map[string][]string{"a": snapshots, "b": snapshots}, map[string][]string{"a": {"list"}, "b": {"list"}}},
	} {
		objects := rendered(t, append(test.values, "settings.published=false")...)
		if diff := cmp.Diff(test.maps, granted(objects, "configmaps")); diff != "" {
			t.Errorf("%s, ConfigMaps (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(test.jobs, granted(objects, "jobs")); diff != "" {
			t.Errorf("%s, Jobs (-want +got):\n%s", name, diff)
		}
		for _, resource := range []string{"replicasets", "controllerrevisions"} { // what is made again restarts nothing, with or without pins
			for namespace := range test.maps {
				if got := granted(objects, resource)[namespace]; !slices.Equal(got, []string{"list"}) {
					t.Errorf("%s, %s in %q: %v, want list", name, resource, namespace, got)
				}
			}
		}
		for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](objects) {
			if policy.Name == "configstamp-snapshots" && test.jobs == nil {
				t.Errorf("%s: a policy for snapshots that nobody makes", name)
			}
		}
	}
}

// The right to write ConfigMaps comes with what limits it.
func TestPins_AreHeldToSnapshots(t *testing.T) {
	t.Parallel()
	for name, values := range variants {
		objects := rendered(t, append(slices.Clone(values), "pins.enabled=true")...)
		held := false
		for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](objects) {
			rules := policy.Spec.MatchConstraints.ResourceRules
			held = held || policy.Name == "configstamp-snapshots" && len(rules) == 1 && slices.Equal(rules[0].Resources, []string{"configmaps"}) &&
				slices.Equal(rules[0].Operations, []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"}) &&
				*policy.Spec.FailurePolicy == admissionregistrationv1.Fail
		}
		bound := slices.ContainsFunc(all[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](objects), func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == "configstamp-snapshots" && slices.Equal(b.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny})
		})
		if off := slices.Contains(values, "admissionPolicy.enabled=false"); held == off || bound == off {
			t.Errorf("%s: the policy is there: %t, and bound: %t", name, held, bound)
		}
	}
}

func TestPins_FlagsOfBothProcesses(t *testing.T) {
	t.Parallel()
	containers := func(values ...string) []corev1.Container {
		return only[*appsv1.Deployment](t, rendered(t, values...)).Spec.Template.Spec.Containers
	}
	for _, container := range containers() {
		if at := slices.IndexFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, "--pin") || strings.HasPrefix(arg, "--snapshot") }); at >= 0 {
			t.Errorf("nobody asked for it: %s has %s", container.Name, container.Args[at])
		}
	}
	on := containers("pins.enabled=true", "policy.pin=true", "pins.snapshots=0", "pins.grace=2h")
	for _, container := range on {
		for _, want := range []string{"--pins", "--pin=true"} {
			if !slices.Contains(container.Args, want) {
				t.Errorf("no %s in %q", want, container.Args)
			}
		}
	}
	for _, want := range []string{"--snapshots=0", "--snapshot-grace=2h"} {
		if !slices.Contains(on[1].Args, want) || slices.Contains(on[0].Args, want) {
			t.Errorf("%s is the controller's: %q, %q", want, on[0].Args, on[1].Args)
		}
	}
}
