package oracle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// Of all Pods those alone are asked about that a controller makes from a template that pins.
func TestPodsThatPinAreAskedAbout(t *testing.T) {
	pins := map[string]string{"configstamp.dev/pins": "{}"}
	replicaSet := []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
	for name, c := range map[string]struct {
		meta  metav1.ObjectMeta
		asked bool
	}{
		"of a template that pins":           {metav1.ObjectMeta{Annotations: pins, OwnerReferences: replicaSet}, true},
		"and of somebody else besides":      {metav1.ObjectMeta{Annotations: pins, OwnerReferences: append([]metav1.OwnerReference{{Kind: "Job"}}, replicaSet...)}, true},
		"of a template that does not":       {metav1.ObjectMeta{Annotations: map[string]string{"configmap.configstamp.dev/a": "v1:absent"}, OwnerReferences: replicaSet}, false},
		"without annotations":               {metav1.ObjectMeta{OwnerReferences: replicaSet}, false},
		"a copy that no controller owns":    {metav1.ObjectMeta{Annotations: pins}, false},
		"owned by what does not control it": {metav1.ObjectMeta{Annotations: pins, OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet"}, {Kind: "Job", Controller: new(false)}}}, false},
	} {
		pod := &corev1.Pod{ObjectMeta: c.meta}
		kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
		attributes := &admission.VersionedAttributes{
			Attributes:    admission.NewAttributesRecord(pod, nil, kind, "shop", "web", resource, "", admission.Create, nil, false, account("kube-system:replicaset-controller")),
			VersionedKind: kind, VersionedObject: admission.NewLazyObject(pod), VersionedOldObject: admission.NewLazyObject(nil),
		}
		for _, kubernetes := range []string{"1.30", "1.37"} {
			said := matcherOf(t, "pins.yaml", "pins.configstamp.dev", kubernetes).Match(t.Context(), attributes, nil, nil)
			if said.Error != nil || said.Matches != c.asked {
				t.Errorf("Kubernetes %s, %s: asked: %t, by %q, %v", kubernetes, name, said.Matches, said.FailedConditionName, said.Error)
			}
		}
	}
}
