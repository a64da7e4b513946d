package lab

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestARolloutBeginsWithTheTemplateAndEndsWithTheStatus(t *testing.T) {
	r := &Rollouts{seen: map[types.NamespacedName]*deployed{}}
	see := func(generation, observed int64, stamp string, pods, updated, available int32) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: generation}}
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Template.Annotations = map[string]string{"stamp": stamp}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: pods, UpdatedReplicas: updated, AvailableReplicas: available}
		r.see(d)
	}
	rolls := func() []Roll { return r.Since(time.Time{})[types.NamespacedName{Name: "app"}] }
	see(1, 1, "a", 1, 1, 1)
	see(2, 1, "a", 1, 1, 1) // an annotation of its own
	if len(rolls()) != 0 {
		t.Fatalf("what was there already, and changed outside of its template, counts as a rollout: %v", rolls())
	}
	for _, unfinished := range []func(){
		func() { see(3, 2, "b", 1, 1, 1) }, // the status speaks of the template before
		func() { see(3, 3, "b", 1, 0, 1) }, // no new Pod yet
		func() { see(3, 3, "b", 2, 1, 1) }, // both
		func() { see(3, 3, "b", 1, 1, 0) }, // not available yet
	} {
		if unfinished(); len(rolls()) != 1 || !rolls()[0].Done.IsZero() || r.Whole() != 0 {
			t.Fatalf("want one rollout under way, got %v", rolls())
		}
	}
	see(3, 3, "b", 1, 1, 1)
	done := rolls()[0].Done
	if done.IsZero() || r.Whole() != 1 {
		t.Fatalf("want one rollout that is done, got %v", rolls())
	}
	see(3, 3, "b", 1, 1, 1)
	if now := rolls(); len(now) != 1 || now[0].Done != done {
		t.Errorf("a later event moves the end: %v", now)
	}
	if late := r.Since(done.Add(time.Nanosecond)); len(late) != 0 {
		t.Errorf("a rollout that began before counts: %v", late)
	}
}
