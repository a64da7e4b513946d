package deploy

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selectors are all that select Pods, by what they belong to.
func selectors(t *testing.T, objects []runtime.Object) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	for _, service := range all[*corev1.Service](objects) {
		found["Service "+service.Name] = service.Spec.Selector
	}
	for _, budget := range all[*policyv1.PodDisruptionBudget](objects) {
		found["PodDisruptionBudget"] = budget.Spec.Selector.MatchLabels
	}
	for _, policy := range all[*networkingv1.NetworkPolicy](objects) {
		found["NetworkPolicy"] = policy.Spec.PodSelector.MatchLabels
	}
	for _, custom := range all[*unstructured.Unstructured](objects) {
		if custom.GetKind() == "PodMonitor" {
			found["PodMonitor"], _, _ = unstructured.NestedStringMap(custom.Object, "spec", "selector", "matchLabels")
		}
	}
	spec := only[*appsv1.Deployment](t, objects).Spec
	found["Deployment"] = spec.Selector.MatchLabels
	for _, spread := range spec.Template.Spec.TopologySpreadConstraints {
		found["the spread of Pods"] = spread.LabelSelector.MatchLabels
	}
	return found
}

// All that selects Pods selects ours.
func TestSelectorsSelectOurPods(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{everything, {"metrics.serviceMonitor.enabled=true", "networkPolicy.enabled=true"}} {
		objects := rendered(t, values...)
		found := selectors(t, objects)
		if len(found) < 6 {
			t.Errorf("%d selectors: %v", len(found), found)
		}
		for of, selector := range found {
			if pods := only[*appsv1.Deployment](t, objects).Spec.Template.Labels; !labels.SelectorFromSet(selector).Matches(labels.Set(pods)) {
				t.Errorf("%s does not select our Pods: %v", of, pods)
			}
		}
	}
}

// All objects have the labels by which Helm's objects are found.
func TestObjectsBelongToTheRelease(t *testing.T) {
	t.Parallel()
	for _, object := range rendered(t) {
		meta, ok := object.(metav1.Object)
		if !ok {
			t.Fatalf("%T has no metadata", object)
		}
		if meta.GetLabels()["app.kubernetes.io/instance"] != "configstamp" || meta.GetLabels()["helm.sh/chart"] == "" {
			t.Errorf("%T %s has the labels %v", object, meta.GetName(), meta.GetLabels())
		}
	}
}

// Prometheus trusts the authority of our certificates, and calls the job by the name that alerts know.
func TestMonitorsKnowUs(t *testing.T) {
	t.Parallel()
	for mode, authority := range map[string]string{"cert-manager": "configstamp-tls", "self-managed": "configstamp-authority"} {
		for monitor, endpoints := range map[string]string{"podMonitor": "podMetricsEndpoints", "serviceMonitor": "endpoints"} {
			found := 0
			for _, custom := range all[*unstructured.Unstructured](rendered(t, "certificates.mode="+mode, "metrics.exposure=tls", "metrics."+monitor+".enabled=true")) {
				scraped, monitors, _ := unstructured.NestedSlice(custom.Object, "spec", endpoints)
				if !monitors {
					continue
				}
				found++
				if job, _, _ := unstructured.NestedString(custom.Object, "spec", "jobLabel"); job != "app.kubernetes.io/name" {
					t.Errorf("%s: the job is called by %q", monitor, job)
				}
				for _, endpoint := range scraped {
					ca, _, _ := unstructured.NestedStringMap(endpoint.(map[string]any), "tlsConfig", "ca", "secret")
					if ca["name"] != authority || ca["key"] != "ca.crt" {
						t.Errorf("%s, %s: it trusts %v", mode, monitor, ca)
					}
				}
			}
			if found != 1 {
				t.Errorf("%s: %d monitors", monitor, found)
			}
		}
	}
}
