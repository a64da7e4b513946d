package deploy

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Which entry is asked about a workload, by the labels of its Namespace and its own. The entry dialects also has a
// condition on annotations.
func TestOptIn_WhatReachesTheWebhook(t *testing.T) {
	t.Parallel()
	values := []string{"", "enabled", "disabled", "disable"}  // of both labels
	for optIn, want := range map[string]map[string][4]string{ // by Namespace: the entry for each value of the workload's label
		"labelled": {
			"":         {"dialects", "workload", "", "dialects"},
			"enabled":  {"namespace", "namespace", "", "namespace"},
			"disabled": {"dialects", "workload", "", "dialects"},
			"disable":  {"dialects", "workload", "", "dialects"},
		},
		"all": {
			"":         {"namespace", "namespace", "", "namespace"},
			"enabled":  {"namespace", "namespace", "", "namespace"},
			"disabled": {"dialects", "workload", "", "dialects"},
			"disable":  {"namespace", "namespace", "", "namespace"},
		},
	} {
		webhooks := only[*admissionregistrationv1.MutatingWebhookConfiguration](t, rendered(t, "optIn="+optIn, "dialects={reloader}", "excludedNamespaces={bank}")).Webhooks
		asked := func(name, onNamespace, onWorkload string) string {
			var entries []string
			for i := range webhooks {
				namespace, workload := labels.Set{corev1.LabelMetadataName: name}, labels.Set{}
				if onNamespace != "" {
					namespace["configstamp.dev/inject"] = onNamespace
				}
				if onWorkload != "" {
					workload["configstamp.dev/inject"] = onWorkload
				}
				if selects(t, webhooks[i].NamespaceSelector, namespace) && selects(t, webhooks[i].ObjectSelector, workload) {
					entries = append(entries, strings.TrimSuffix(webhooks[i].Name, ".configstamp.dev"))
				}
			}
			return strings.Join(entries, ", ")
		}
		for _, onNamespace := range values {
			for i, onWorkload := range values {
				if got := asked("shop", onNamespace, onWorkload); got != want[onNamespace][i] {
					t.Errorf("%s: Namespace %q, workload %q: asks %q, want %q", optIn, onNamespace, onWorkload, got, want[onNamespace][i])
				}
				for _, name := range []string{"bank", "configstamp", "kube-system", "kube-node-lease"} {
					if got := asked(name, onNamespace, onWorkload); got != "" && (optIn == "all" || !strings.HasPrefix(name, "kube-")) {
						t.Errorf("%s: in %s, labelled %q, workload %q: asks %q", optIn, name, onNamespace, onWorkload, got)
					}
				}
			}
		}
	}
}

func selects(t *testing.T, by *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(set)
}

// Our own policies say the same as the selectors.
func TestOptIn_OurPolicies(t *testing.T) {
	t.Parallel()
	const isIn, isNotOut = "orValue('') == 'enabled'", "orValue('') != 'disabled'"
	for values, want := range map[string]struct{ namespace, not, never string }{
		"optIn=labelled": {isIn, isNotOut, "request.namespace in ['bank', 'configstamp']"},
		"optIn=all":      {isNotOut, isIn, "request.namespace in ['bank', 'configstamp', 'kube-system', 'kube-node-lease']"},
		"optIn=null":     {isIn, isNotOut, "request.namespace in ['bank', 'configstamp']"}, // values of an earlier chart
	} {
		objects, seen := rendered(t, values, "excludedNamespaces={bank}", "pins.enabled=true", "keepStamps=on"), 0
		expressions := map[string]string{} // by policy
		for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](objects) {
			for _, variable := range policy.Spec.Variables {
				expressions[policy.Name] += variable.Expression + "\n"
			}
			for _, validation := range policy.Spec.Validations {
				expressions[policy.Name] += validation.Expression + "\n"
			}
		}
		for _, variable := range only[*admissionregistrationv1.MutatingAdmissionPolicy](t, objects).Spec.Variables {
			expressions["configstamp-keep-stamps"] += variable.Expression + "\n"
		}
		for name, text := range expressions {
			ofNamespace := "namespaceObject.metadata.?labels[?'configstamp.dev/inject']."
			switch name {
			case "configstamp", "configstamp-snapshots", "configstamp-keep-stamps":
				if !strings.Contains(text, ofNamespace+want.namespace) || strings.Contains(text, ofNamespace+want.not) {
					t.Errorf("%s: %s asks otherwise for the label of the Namespace", values, name)
				}
			case "configstamp-report":
			default:
				continue
			}
			if seen++; !strings.Contains(text, want.never) {
				t.Errorf("%s: %s never serves others:\n%s", values, name, text)
			}
		}
		if seen != 4 {
			t.Errorf("%s: %d policies were looked at", values, seen)
		}
		for _, container := range only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers {
			if slices.Contains(container.Args, "--opt-in=all") != (values == "optIn=all") {
				t.Errorf("%s: %s has %q", values, container.Name, container.Args)
			}
		}
	}
}

func TestOptIn_IsNotCombinedWithNamespaces(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"optIn=all,namespaces={a}": "optIn: all and namespaces exclude each other",
		"optIn=everything":         "optIn",
	} {
		if _, complaint := template(t, values); !strings.Contains(complaint, want) {
			t.Errorf("%s: %q, want %q", values, complaint, want)
		}
	}
}

// The plugin reads the setting where every user may read it.
func TestOptIn_IsPublished(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"labelled", "all"} {
		for _, settings := range all[*corev1.ConfigMap](rendered(t, "optIn="+value)) {
			if settings.Data["opt-in"] != value {
				t.Errorf("%s: published as %q", value, settings.Data["opt-in"])
			}
		}
	}
}
