package timeline

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RolledOut reports whether a workload's status tells that its newest revision
// runs everywhere and is available, as kubectl rollout status would.
func RolledOut(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "Deployment":
		d := read[appsv1.Deployment](object)
		want := count(d.Spec.Replicas)
		return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas == want &&
			d.Status.Replicas == want && d.Status.AvailableReplicas == want
	case "StatefulSet":
		s := read[appsv1.StatefulSet](object)
		want := count(s.Spec.Replicas)
		return s.Status.ObservedGeneration >= s.Generation && s.Status.CurrentRevision == s.Status.UpdateRevision &&
			s.Status.Replicas == want && s.Status.AvailableReplicas == want
	case "DaemonSet":
		d := read[appsv1.DaemonSet](object)
		want := d.Status.DesiredNumberScheduled
		return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedNumberScheduled == want && d.Status.NumberAvailable == want
	}
	return false
}

// Reports tells whether a rollout of a workload can be seen to be done: not when
// nothing runs, or when somebody else has to say that it may go on.
func Reports(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "Deployment":
		d := read[appsv1.Deployment](object)
		return !d.Spec.Paused && count(d.Spec.Replicas) > 0
	case "StatefulSet":
		s := read[appsv1.StatefulSet](object)
		return s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && count(s.Spec.Replicas) > 0
	case "DaemonSet":
		return read[appsv1.DaemonSet](object).Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
	}
	return false
}

func count(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
