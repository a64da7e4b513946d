package workload_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/configstamp/configstamp/internal/workload"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

// kindOf is a row of the whole table, or a custom kind as --workload gives it.
func kindOf(t *testing.T, name string) *workload.Kind {
	t.Helper()
	if strings.Contains(name, "=") {
		kind, err := workload.ParseKind(name)
		if err != nil {
			t.Fatal(err)
		}
		return kind
	}
	for _, kind := range workload.Known() {
		if kind.Name == name {
			return kind
		}
	}
	return kindNamed(t, name)
}

func jsonOf(t *testing.T, object any) []byte {
	t.Helper()
	if text, ok := object.(string); ok {
		return []byte(text)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// deployment is one of generation 2 that its controller has seen and that is rolled
// out; changes make it what a case needs.
func deployment(replicas int32, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
		Spec: appsv1.DeploymentSpec{
			Replicas:                &replicas,
			MinReadySeconds:         5,
			ProgressDeadlineSeconds: ptr.To[int32](600),
			Strategy:                appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas},
	}
	progressing(corev1.ConditionTrue, "NewReplicaSetAvailable")(d)
	for _, change := range changes {
		change(d)
	}
	return d
}

// progressing gives a Deployment its condition, behind another.
func progressing(status corev1.ConditionStatus, reason string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable", LastTransitionTime: metav1.NewTime(later)},
			{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: "hunter2", LastUpdateTime: metav1.NewTime(noon), LastTransitionTime: metav1.NewTime(later)},
		}
	}
}

func replicaFailure(reason string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: reason, Message: "hunter2"})
	}
}

// has sets how many replicas there are, of the newest revision and available.
func has(total, updated, available int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = total, updated, available
	}
}

func statefulSet(replicas int32, changes ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Generation: 2},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}},
		Status: appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			CurrentRevision: "db-1", UpdateRevision: "db-2"},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func partition(p int32) func(*appsv1.StatefulSet) {
	return func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &p}
	}
}

func daemonSet(desired, updated, available int32, changes ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Generation: 2},
		Spec:       appsv1.DaemonSetSpec{MinReadySeconds: 1, UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: desired, CurrentNumberScheduled: desired,
			UpdatedNumberScheduled: updated, NumberAvailable: available},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

// A row of the table is not told by its own words only: each case says what the
// whole Status is.
func TestStatus(t *testing.T) {
	const (
		ready   = "example.com/v1/machines=spec.pod,rollout=Ready"
		silent  = "example.com/v1/machines=spec.pod"
		custom  = `{"metadata":{"generation":3},"spec":{"replicas":{"min":1},"paused":"no","strategy":"OnDelete"},"status":{"phase":7,"replicas":"x","observedGeneration":%,"conditions":[{"type":"Other","status":"False","lastTransitionTime":"soon"},{"type":"Ready","status":#,"lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`
		clone   = `{"metadata":{"generation":2},"spec":{"replicas":10,"minReadySeconds":3,"updateStrategy":{"type":"ReCreate"%}},"status":{"observedGeneration":2,"replicas":10,"availableReplicas":10,#}}`
		config  = `{"metadata":{"generation":2},"spec":{"replicas":3,"strategy":{"type":"Rolling"},"selector":{"name":"web"}%},"status":{"observedGeneration":2,"replicas":3,"availableReplicas":3,#}}`
		argo    = `{"metadata":{"generation":12},"spec":{"replicas":3,"strategy":{"canary":{}}%},"status":{"replicas":3,"updatedReplicas":1,"availableReplicas":3,"conditions":[{"type":"Progressing","status":"True","reason":"ReplicaSetUpdated","lastUpdateTime":"2026-03-01T12:00:00Z"}],#}}`
		knative = `{"metadata":{"generation":2},"status":{"observedGeneration":%,"conditions":[{"type":"ConfigurationsReady","status":"False"},{"type":"Ready","status":#,"lastTransitionTime":"2026-03-01T12:00:00Z"}]}}`
	)
	fill := func(text string, parts ...string) string {
		for i, mark := range []string{"%", "#"}[:len(parts)] {
			text = strings.Replace(text, mark, parts[i], 1)
		}
		return text
	}
	const minReady = 5 * time.Second
	unavailable := func(most intstr.IntOrString) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: &most}
		}
	}
	type status = workload.Status
	for about, c := range map[string]struct {
		kind   string
		object any
		want   status
	}{
		"Deployment: rolled out": {"Deployment", deployment(3),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3, Current: noon, MinReady: minReady}},
		"Deployment: no deadline of its own once it was rolled out": {"Deployment", deployment(3, has(3, 3, 1)),
			status{Wanted: 3, Phase: workload.Rolling, Available: 1, Updated: 3, Missing: 2, Current: noon, MinReady: minReady}},
		"Deployment: half way": {"Deployment", deployment(3, has(4, 2, 3), progressing("True", "ReplicaSetUpdated")),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 2, Missing: 1, Old: true, Current: noon, MinReady: minReady, Deadline: true}},
		"Deployment: an old replica remains": {"Deployment", deployment(3, has(4, 3, 4), progressing("True", "ReplicaSetUpdated")),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 4, Updated: 3, Old: true, Current: noon, MinReady: minReady, Deadline: true}},
		"Deployment: all are new, one is not available yet": {"Deployment", deployment(3, has(3, 3, 2), progressing("True", "ReplicaSetUpdated")),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 2, Updated: 3, Missing: 1, Current: noon, MinReady: minReady, Deadline: true}},
		"Deployment: one too many, and not available": {"Deployment", deployment(3, has(4, 4, 3)),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 4, Current: noon, MinReady: minReady}},
		"Deployment: not looked at yet": {"Deployment", deployment(3, func(d *appsv1.Deployment) { d.Generation = 3 }),
			status{Behind: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Missing: 3, Old: true, Current: noon, MinReady: minReady}},
		"Deployment: not looked at, what failed was before": {"Deployment", deployment(3, progressing("False", "ProgressDeadlineExceeded"), func(d *appsv1.Deployment) { d.Generation = 3 }),
			status{Behind: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Missing: 3, Old: true, Current: noon, MinReady: minReady, Deadline: true}},
		"Deployment: new, without a status": {"Deployment", deployment(3, func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{} }),
			status{Behind: true, Wanted: 3, Phase: workload.Rolling, Missing: 3, MinReady: minReady, Deadline: true}},
		"Deployment: its deadline is over": {"Deployment", deployment(3, has(4, 1, 3), progressing("False", "ProgressDeadlineExceeded")),
			status{Wanted: 3, Phase: workload.Failed, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true, Current: noon, FailedAt: later, Why: "ProgressDeadlineExceeded", MinReady: minReady, Deadline: true}},
		"Deployment: its ReplicaSet is refused": {"Deployment", deployment(1, has(1, 0, 1), progressing("False", "ReplicaSetCreateError")),
			status{Wanted: 1, Phase: workload.Failed, Available: 1, Missing: 1, Old: true, Current: noon, FailedAt: later, Why: "ReplicaSetCreateError", MinReady: minReady, Deadline: true}},
		"Deployment: its progress is unknown, as after a pause": {"Deployment", deployment(2, has(2, 1, 2), progressing("Unknown", "DeploymentResumed")),
			status{Wanted: 2, Phase: workload.Rolling, Gentle: true, Available: 2, Updated: 1, Missing: 1, Old: true, Current: noon, MinReady: minReady, Deadline: true}},
		"Deployment: its pods are refused": {"Deployment", deployment(3, has(0, 0, 0), progressing("True", "ReplicaSetUpdated"), replicaFailure("FailedCreate")),
			status{Wanted: 3, Phase: workload.Rolling, Missing: 3, Current: noon, MinReady: minReady, Deadline: true, Refused: true}},
		"Deployment: its pods cannot be deleted": {"Deployment", deployment(3, replicaFailure("FailedDelete")),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3, Current: noon, MinReady: minReady}},
		"Deployment: paused, and failed before": {"Deployment", deployment(3, progressing("False", "ProgressDeadlineExceeded"), func(d *appsv1.Deployment) { d.Spec.Paused = true }),
			status{Wanted: 3, Waits: "it is paused", Gentle: true, Available: 3, Updated: 3, Current: noon, MinReady: minReady, Deadline: true}},
		"Deployment: paused, and not looked at": {"Deployment", deployment(3, func(d *appsv1.Deployment) { d.Spec.Paused, d.Generation = true, 3 }),
			status{Wanted: 3, Waits: "it is paused", Gentle: true, Available: 3, Updated: 3, Current: noon, MinReady: minReady}},
		"Deployment: scaled to nothing": {"Deployment", deployment(0),
			status{Waits: "it has no replicas", Current: noon, MinReady: minReady}},
		"Deployment: the default is one replica": {"Deployment", deployment(1, func(d *appsv1.Deployment) { d.Spec.Replicas = nil }),
			status{Wanted: 1, Phase: workload.RolledOut, Available: 1, Updated: 1, Current: noon, MinReady: minReady}},
		"Deployment: Recreate is not gentle": {"Deployment", deployment(3, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }),
			status{Recreates: true, Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3, Current: noon, MinReady: minReady}},
		"Deployment: maxUnavailable takes all": {"Deployment", deployment(3, unavailable(intstr.FromString("100%"))),
			status{Recreates: true, Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3, Current: noon, MinReady: minReady}},
		"Deployment: maxUnavailable takes more than there are": {"Deployment", deployment(3, unavailable(intstr.FromInt32(5))),
			status{Recreates: true, Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3, Current: noon, MinReady: minReady}},
		"Deployment: maxUnavailable leaves one": {"Deployment", deployment(3, unavailable(intstr.FromString("99%"))),
			status{Gentle: true, Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3, Current: noon, MinReady: minReady}},
		"Deployment: it switched its deadline off": {"Deployment", deployment(2, has(3, 1, 2), func(d *appsv1.Deployment) {
			d.Spec.ProgressDeadlineSeconds, d.Status.Conditions = ptr.To[int32](2147483647), nil
		}), status{Wanted: 2, Phase: workload.Rolling, Gentle: true, Available: 2, Updated: 1, Missing: 1, Old: true, MinReady: minReady}},
		"Deployment: a reason that is no word": {"Deployment", deployment(1, progressing("False", "exit code 7")),
			status{Wanted: 1, Phase: workload.Failed, Available: 1, Updated: 1, Current: noon, FailedAt: later, MinReady: minReady, Deadline: true}},

		"StatefulSet: rolled out": {"StatefulSet", statefulSet(3),
			status{Ordered: true, Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3}},
		"StatefulSet: rolled out, one that starts again": {"StatefulSet", statefulSet(3, func(s *appsv1.StatefulSet) { s.Status.AvailableReplicas = 2 }),
			status{Ordered: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 2, Updated: 3, Missing: 1}},
		"StatefulSet: no pod waits for another": {"StatefulSet", statefulSet(3, func(s *appsv1.StatefulSet) { s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3}},
		"StatefulSet: all pods go at once": {"StatefulSet", statefulSet(3, func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.RecreateStatefulSetStrategyType }),
			status{Ordered: true, Recreates: true, Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3}},
		"StatefulSet: maxUnavailable takes all": {"StatefulSet", statefulSet(3, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(3))}
		}), status{Ordered: true, Recreates: true, Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3}},
		"StatefulSet: half way": {"StatefulSet", statefulSet(3, func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 1 }),
			status{Ordered: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true}},
		"StatefulSet: not looked at yet": {"StatefulSet", statefulSet(1, func(s *appsv1.StatefulSet) { s.Generation = 3 }),
			status{Behind: true, Ordered: true, Recreates: true, Wanted: 1, Phase: workload.Rolling, Available: 1, Missing: 1, Old: true}},
		"StatefulSet: new, without a status": {"StatefulSet", statefulSet(1, func(s *appsv1.StatefulSet) { s.Status = appsv1.StatefulSetStatus{} }),
			status{Behind: true, Ordered: true, Recreates: true, Wanted: 1, Phase: workload.Rolling, Missing: 1}},
		"StatefulSet: a partition of nothing": {"StatefulSet", statefulSet(3, partition(0)),
			status{Ordered: true, Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3}},
		"StatefulSet: all that its partition lets go": {"StatefulSet", statefulSet(3, partition(2), func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 1 }),
			status{Ordered: true, Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 1}},
		"StatefulSet: not yet all that its partition lets go": {"StatefulSet", statefulSet(3, partition(1), func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 1 }),
			status{Ordered: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 1, Missing: 1, Old: true}},
		"StatefulSet: beside its partition, one is not available": {"StatefulSet", statefulSet(3, partition(2), func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas, s.Status.AvailableReplicas = 1, 2 }),
			status{Ordered: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 2, Updated: 1, Missing: 1}},
		"StatefulSet: its partition holds all": {"StatefulSet", statefulSet(3, partition(3), func(s *appsv1.StatefulSet) { s.Generation = 3 }),
			status{Ordered: true, Wanted: 3, Waits: "its partition keeps every replica at the old revision", Gentle: true, Available: 3, Updated: 3}},
		"StatefulSet: its partition holds more": {"StatefulSet", statefulSet(3, partition(7)),
			status{Ordered: true, Wanted: 3, Waits: "its partition keeps every replica at the old revision", Gentle: true, Available: 3, Updated: 3}},
		"StatefulSet: OnDelete": {"StatefulSet", statefulSet(3, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			s.Status.UpdatedReplicas = 0
		}), status{Ordered: true, Wanted: 3, Waits: "its update strategy is OnDelete", Available: 3}},
		"StatefulSet: scaled to nothing": {"StatefulSet", statefulSet(0),
			status{Ordered: true, Waits: "it has no replicas"}},

		"DaemonSet: rolled out": {"DaemonSet", daemonSet(3, 3, 3),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3, MinReady: time.Second, PerNode: true}},
		"DaemonSet: half way": {"DaemonSet", daemonSet(3, 1, 2),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 2, Updated: 1, Missing: 2, Old: true, MinReady: time.Second, PerNode: true}},
		"DaemonSet: one node does not answer": {"DaemonSet", daemonSet(10, 9, 9),
			status{Wanted: 10, Phase: workload.Rolling, Gentle: true, Available: 9, Updated: 9, Missing: 1, Old: true, MinReady: time.Second, PerNode: true}},
		"DaemonSet: one node": {"DaemonSet", daemonSet(1, 1, 1),
			status{Recreates: true, Wanted: 1, Phase: workload.RolledOut, Available: 1, Updated: 1, MinReady: time.Second, PerNode: true}},
		"DaemonSet: maxUnavailable takes all": {"DaemonSet", daemonSet(3, 3, 3, func(d *appsv1.DaemonSet) {
			d.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromString("67%"))}
		}), status{Recreates: true, Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3, MinReady: time.Second, PerNode: true}},
		"DaemonSet: no node": {"DaemonSet", daemonSet(0, 0, 0),
			status{Waits: "it runs on no node", MinReady: time.Second, PerNode: true}},
		"DaemonSet: no node yet, as far as its controller has looked": {"DaemonSet", daemonSet(0, 0, 0, func(d *appsv1.DaemonSet) { d.Status.ObservedGeneration = 0 }),
			status{Behind: true, Phase: workload.Rolling, MinReady: time.Second, PerNode: true}},
		"DaemonSet: not looked at yet": {"DaemonSet", daemonSet(2, 2, 2, func(d *appsv1.DaemonSet) { d.Generation = 3 }),
			status{Behind: true, Wanted: 2, Phase: workload.Rolling, Gentle: true, Available: 2, Missing: 2, Old: true, MinReady: time.Second, PerNode: true}},
		"DaemonSet: OnDelete": {"DaemonSet", daemonSet(3, 0, 3, func(d *appsv1.DaemonSet) { d.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType }),
			status{Wanted: 3, Waits: "its update strategy is OnDelete", Available: 3, MinReady: time.Second, PerNode: true}},

		"CronJob":               {"CronJob", `{"status":{"conditions":7}}`, status{Waits: "later runs start with it"}},
		"Job":                   {"Job", `{}`, status{Waits: "only objects that are created later start with it"}},
		"ReplicaSet":            {"ReplicaSet", `{"spec":{"replicas":3}}`, status{Waits: "only objects that are created later start with it"}},
		"ReplicationController": {"ReplicationController", `{}`, status{Waits: "only objects that are created later start with it"}},
		"Pod":                   {"Pod", `{}`, status{Waits: "only objects that are created later start with it"}},

		"CloneSet: rolled out": {"CloneSet", fill(clone, ``, `"updatedReplicas":10,"updatedReadyReplicas":10,"updatedAvailableReplicas":10`),
			status{Wanted: 10, Phase: workload.RolledOut, Gentle: true, Available: 10, Updated: 10, MinReady: 3 * time.Second}},
		"CloneSet: an old version, which does not tell who of the new is available": {"CloneSet", fill(clone, ``, `"updatedReplicas":10,"updatedReadyReplicas":10`),
			status{Wanted: 10, Phase: workload.RolledOut, Gentle: true, Available: 10, Updated: 10, MinReady: 3 * time.Second}},
		"CloneSet: all are new, one is not ready": {"CloneSet", fill(clone, ``, `"updatedReplicas":10,"updatedReadyReplicas":9,"updatedAvailableReplicas":8`),
			status{Wanted: 10, Phase: workload.Rolling, Gentle: true, Available: 10, Updated: 10, Missing: 2, MinReady: 3 * time.Second}},
		"CloneSet: a partition": {"CloneSet", fill(clone, `,"partition":7`, `"updatedReplicas":3,"updatedReadyReplicas":3`),
			status{Wanted: 10, Phase: workload.RolledOut, Gentle: true, Available: 10, Updated: 3, MinReady: 3 * time.Second}},
		"CloneSet: a partition in percent, rounded up": {"CloneSet", fill(clone, `,"partition":"61%"`, `"updatedReplicas":3,"updatedReadyReplicas":3`),
			status{Wanted: 10, Phase: workload.RolledOut, Gentle: true, Available: 10, Updated: 3, MinReady: 3 * time.Second}},
		"CloneSet: not yet all that it lets go": {"CloneSet", fill(clone, `,"partition":"60%"`, `"updatedReplicas":3,"updatedReadyReplicas":2`),
			status{Wanted: 10, Phase: workload.Rolling, Gentle: true, Available: 10, Updated: 3, Missing: 2, Old: true, MinReady: 3 * time.Second}},
		"CloneSet: less than all in percent lets one go": {"CloneSet", fill(clone, `,"partition":"99%"`, `"updatedReplicas":0,"updatedReadyReplicas":0`),
			status{Wanted: 10, Phase: workload.Rolling, Gentle: true, Available: 10, Missing: 1, Old: true, MinReady: 3 * time.Second}},
		"CloneSet: its partition holds all": {"CloneSet", fill(clone, `,"partition":"100%"`, `"updatedReplicas":0`),
			status{Wanted: 10, Waits: "its partition keeps every replica at the old revision", Gentle: true, Available: 10, MinReady: 3 * time.Second}},
		"CloneSet: in place": {"CloneSet", strings.Replace(fill(clone, ``, `"updatedReplicas":10,"updatedReadyReplicas":10`), "ReCreate", "InPlaceIfPossible", 1),
			status{Wanted: 10, Waits: "its update strategy changes pods in place, and their containers keep running", Gentle: true, Available: 10, Updated: 10, MinReady: 3 * time.Second}},
		"CloneSet: paused": {"CloneSet", fill(clone, `,"paused":true`, `"updatedReplicas":3`),
			status{Wanted: 10, Waits: "it is paused", Gentle: true, Available: 10, Updated: 3, MinReady: 3 * time.Second}},

		"DeploymentConfig: rolled out": {"DeploymentConfig", fill(config, ``, `"updatedReplicas":3,"conditions":[{"type":"Progressing","status":"True","reason":"NewReplicationControllerAvailable","lastUpdateTime":"2026-03-01T12:00:00Z"}]`),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3, Current: noon}},
		"DeploymentConfig: half way": {"DeploymentConfig", fill(config, ``, `"updatedReplicas":1,"conditions":[{"type":"Progressing","status":"True","reason":"ReplicationControllerUpdated"}]`),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true, Deadline: true}},
		"DeploymentConfig: failed": {"DeploymentConfig", fill(config, ``, `"updatedReplicas":0,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","lastUpdateTime":"2026-03-01T12:00:00Z"}]`),
			status{Wanted: 3, Phase: workload.Failed, Gentle: true, Available: 3, Missing: 3, Old: true, Current: noon, FailedAt: noon, Why: "ProgressDeadlineExceeded", Deadline: true}},
		"DeploymentConfig: paused": {"DeploymentConfig", fill(config, `,"paused":true`, `"updatedReplicas":3`),
			status{Wanted: 3, Waits: "it is paused", Gentle: true, Available: 3, Updated: 3, Deadline: true}},
		"DeploymentConfig: a change of its template rolls it": {"DeploymentConfig", fill(config, `,"triggers":[{"type":"ImageChange"},{"type":"ConfigChange"}]`, `"updatedReplicas":3`),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 3, Deadline: true}},
		"DeploymentConfig: only a command rolls it": {"DeploymentConfig", fill(config, `,"triggers":[]`, `"updatedReplicas":3`),
			status{Wanted: 3, Waits: "it has no ConfigChange trigger: oc rollout latest rolls it", Gentle: true, Available: 3, Updated: 3, Deadline: true}},
		"DeploymentConfig: a strategy of its own": {"DeploymentConfig", strings.Replace(fill(config, ``, `"updatedReplicas":3`), "Rolling", "Custom", 1),
			status{Wanted: 3, Phase: workload.RolledOut, Available: 3, Updated: 3, Deadline: true}},

		"Knative Service: rolled out": {"Service", fill(knative, `2`, `"True"`),
			status{Phase: workload.RolledOut, Current: noon, Deadline: true}},
		"Knative Service: rolling": {"Service", fill(knative, `2`, `"Unknown"`),
			status{Phase: workload.Rolling, Current: noon, Deadline: true}},
		"Knative Service: failed": {"Service", fill(knative, `2`, `"False","reason":"RevisionMissing"`),
			status{Phase: workload.Failed, Current: noon, FailedAt: noon, Why: "RevisionMissing", Deadline: true}},
		"Knative Service: not looked at yet": {"Service", fill(knative, `1`, `"True"`),
			status{Behind: true, Phase: workload.Rolling, Current: noon, Deadline: true}},
		"Knative Service: new, without a status": {"Service", `{"metadata":{"generation":1}}`,
			status{Phase: workload.Rolling, Deadline: true}},

		"Argo Rollout: healthy": {"Rollout", fill(argo, ``, `"observedGeneration":"12","phase":"Healthy"`),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 1, Current: noon, Deadline: true}},
		"Argo Rollout: progressing": {"Rollout", fill(argo, ``, `"observedGeneration":"12","phase":"Progressing"`),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true, Current: noon, Deadline: true}},
		"Argo Rollout: a word of a later version": {"Rollout", fill(argo, ``, `"observedGeneration":"12","phase":"Pondering"`),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true, Current: noon, Deadline: true}},
		"Argo Rollout: healthy, when it was last looked at": {"Rollout", fill(argo, ``, `"observedGeneration":"9","phase":"Healthy"`),
			status{Behind: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Missing: 3, Old: true, Current: noon, Deadline: true}},
		"Argo Rollout: a hash for a generation": {"Rollout", fill(argo, ``, `"observedGeneration":"5f9b8","phase":"Healthy"`),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 1, Current: noon, Deadline: true}},
		"Argo Rollout: a number for a generation": {"Rollout", fill(argo, ``, `"observedGeneration":11,"phase":"Healthy"`),
			status{Behind: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Missing: 3, Old: true, Current: noon, Deadline: true}},
		"Argo Rollout: new, without a status": {"Rollout", `{"metadata":{"generation":1},"spec":{"strategy":{"blueGreen":{}}}}`,
			status{Behind: true, Wanted: 1, Phase: workload.Rolling, Missing: 1, Deadline: true}},
		"Argo Rollout: it waits at a step": {"Rollout", fill(argo, ``, `"observedGeneration":"12","phase":"Paused","message":"CanaryPauseStep","controllerPause":true,"currentStepIndex":1,"pauseConditions":[{"reason":"CanaryPauseStep","startTime":"2026-03-01T12:00:00Z"}]`),
			status{Wanted: 3, Phase: workload.Suspended, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true, Current: noon, Deadline: true}},
		"Argo Rollout: all are new, and await promotion": {"Rollout", strings.Replace(fill(argo, ``, `"observedGeneration":"12","phase":"Paused","message":"BlueGreenPause","controllerPause":true,"pauseConditions":[{"reason":"BlueGreenPause","startTime":"2026-03-01T12:00:00Z"}],"blueGreen":{"activeSelector":"5f9b8","previewSelector":"7c6d4"}`), `"updatedReplicas":1`, `"updatedReplicas":3`, 1),
			status{Wanted: 3, Phase: workload.Suspended, Gentle: true, Available: 3, Updated: 3, Current: noon, Deadline: true}},
		"Argo Rollout: it waited at a step of the revision before": {"Rollout", fill(argo, ``, `"observedGeneration":"11","phase":"Paused","message":"CanaryPauseStep","controllerPause":true,"pauseConditions":[{"reason":"CanaryPauseStep","startTime":"2026-03-01T12:00:00Z"}]`),
			status{Behind: true, Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Missing: 3, Old: true, Current: noon, Deadline: true}},
		"Argo Rollout: a person paused it": {"Rollout", fill(argo, `,"paused":true`, `"observedGeneration":"12","phase":"Paused","message":"manually paused"`),
			status{Wanted: 3, Waits: "it is paused", Gentle: true, Available: 3, Updated: 1, Current: noon, Deadline: true}},
		"Argo Rollout: a person paused it at a step": {"Rollout", fill(argo, `,"paused":true`, `"observedGeneration":"12","phase":"Paused","message":"manually paused","controllerPause":true,"pauseConditions":[{"reason":"CanaryPauseStep","startTime":"2026-03-01T12:00:00Z"}]`),
			status{Wanted: 3, Waits: "it is paused", Gentle: true, Available: 3, Updated: 1, Current: noon, Deadline: true}},
		"Argo Rollout: paused, and not looked at": {"Rollout", fill(argo, `,"paused":true`, `"observedGeneration":"9","phase":"Healthy"`),
			status{Wanted: 3, Waits: "it is paused", Gentle: true, Available: 3, Updated: 1, Current: noon, Deadline: true}},
		"Argo Rollout: degraded by something else than progress": {"Rollout", fill(argo, ``, `"observedGeneration":"12","phase":"Degraded","message":"hunter2"`),
			status{Wanted: 3, Phase: workload.Failed, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true, Current: noon, Why: "Degraded", Deadline: true}},
		"Argo Rollout: aborted": {"Rollout", `{"metadata":{"generation":1},"status":{"observedGeneration":"1","phase":"Degraded","conditions":[{"type":"Progressing","status":"False","reason":"RolloutAborted","lastUpdateTime":"2026-03-01T12:00:00Z","lastTransitionTime":"2026-03-01T13:00:00Z"}]}}`,
			status{Wanted: 1, Phase: workload.Failed, Missing: 1, Current: noon, FailedAt: later, Why: "RolloutAborted", Deadline: true}},
		"Argo Rollout: named by --workload, it is read as always": {"argoproj.io/v1alpha1/rollouts=spec.template,rollout=Progressing", fill(argo, ``, `"observedGeneration":"12","phase":"Progressing"`),
			status{Wanted: 3, Phase: workload.Rolling, Gentle: true, Available: 3, Updated: 1, Missing: 2, Old: true, Current: noon, Deadline: true}},
		"Argo Rollout: without a condition too": {"argoproj.io/v1alpha1/rollouts=spec.template", fill(argo, ``, `"observedGeneration":"12","phase":"Healthy"`),
			status{Wanted: 3, Phase: workload.RolledOut, Gentle: true, Available: 3, Updated: 1, Current: noon, Deadline: true}},
		"Argo Rollout: but for another condition": {"argoproj.io/v1alpha1/rollouts=spec.template,rollout=Available", fill(argo, ``, `"observedGeneration":"12","phase":"Healthy"`),
			status{Phase: workload.Rolling}},

		"a custom kind: True": {ready, fill(custom, `3`, `"True"`), status{Phase: workload.RolledOut, Current: noon}},
		"a custom kind: False": {ready, fill(custom, `3`, `"False","reason":"MachineBroken","message":"hunter2"`),
			status{Phase: workload.Failed, Current: noon, FailedAt: noon, Why: "MachineBroken"}},
		"a custom kind: a reason that is no word": {ready, fill(custom, `3`, `"False","reason":"hunter2"`),
			status{Phase: workload.Failed, Current: noon, FailedAt: noon}},
		"a custom kind: a reason that is too long": {ready, fill(custom, `3`, `"False","reason":"`+strings.Repeat("x", 65)+`"`),
			status{Phase: workload.Failed, Current: noon, FailedAt: noon}},
		"a custom kind: Unknown":                          {ready, fill(custom, `3`, `"Unknown"`), status{Phase: workload.Rolling, Current: noon}},
		"a custom kind: not looked at yet":                {ready, fill(custom, `2`, `"True"`), status{Behind: true, Phase: workload.Rolling, Current: noon}},
		"a custom kind: it never tells what it looked at": {ready, fill(custom, `null`, `"True"`), status{Phase: workload.RolledOut, Current: noon}},
		"a custom kind: the condition tells that":         {ready, fill(custom, `null`, `"True","observedGeneration":2`), status{Phase: workload.Rolling, Current: noon}},
		"a custom kind: without such a condition":         {ready, `{"metadata":{"generation":3}}`, status{Phase: workload.Rolling}},
		"a custom kind that names no condition":           {silent, fill(custom, `3`, `"True"`), status{}},
	} {
		t.Run(about, func(t *testing.T) {
			kind, raw := kindOf(t, c.kind), jsonOf(t, c.object)
			got, err := kind.Status(raw)
			if err != nil {
				t.Fatalf("%v\n%s", err, raw)
			}
			got.StatusHash = 0 // TestWhichStatusSaysWhatItSpeaksOf is about it
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s%s", diff, raw)
			}
			sameTyped(t, kind, raw)
		})
	}
}

// A status that does not say which generation it speaks of is told from a later one.
func TestWhichStatusSaysWhatItSpeaksOf(t *testing.T) {
	const (
		ready  = "example.com/v1/machines=spec.pod,rollout=Ready"
		silent = "example.com/v1/machines=spec.pod"
	)
	for about, c := range map[string]struct {
		kind, status string
		says         bool
	}{
		"a custom kind: the status says it":           {ready, `{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}`, true},
		"a custom kind: the condition says it":        {ready, `{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}`, true},
		"a custom kind: another condition says it":    {ready, `{"conditions":[{"type":"Ready","status":"True"},{"type":"Other","observedGeneration":2}]}`, false},
		"a custom kind: nothing says it":              {ready, `{"conditions":[{"type":"Ready","status":"True"}]}`, false},
		"a custom kind: it has no status":             {ready, `null`, false},
		"a custom kind that names no condition":       {silent, `{"observedGeneration":2}`, false},
		"Argo Rollout: a generation":                  {"Rollout", `{"observedGeneration":"2"}`, true},
		"Argo Rollout: a hash, as old versions write": {"Rollout", `{"observedGeneration":"5f9b8","phase":"Healthy"}`, false},
		"Deployment: it will say it":                  {"Deployment", `{}`, true},
	} {
		t.Run(about, func(t *testing.T) {
			hash := func(metadata, status string) uint64 {
				told, err := kindOf(t, c.kind).Status([]byte(`{"metadata":` + metadata + `,"spec":{},"status":` + status + `}`))
				if err != nil {
					t.Fatal(err)
				}
				return told.StatusHash
			}
			was, same, other := hash(`{"generation":2}`, c.status), hash(`{"generation":3,"labels":{"a":"b"}}`, c.status), hash(`{"generation":2}`, `{"observedGeneration":null,"x":1}`)
			if c.says != (was == 0) || was != same || was == other && !c.says {
				t.Errorf("%x; %x with other metadata, %x with another status", was, same, other)
			}
		})
	}
}

// What cannot be read is an error that quotes nothing, and no Status.
func TestAnUnreadableStatus(t *testing.T) {
	for about, c := range map[string]struct{ kind, raw, names string }{
		"nothing":                     {"Deployment", ``, "JSON"},
		"no JSON":                     {"Deployment", `hunter2`, "JSON"},
		"broken off":                  {"CronJob", `{"metadata":{"name":"hunter2`, "JSON"},
		"a list":                      {"StatefulSet", `["hunter2"]`, "form"},
		"a list, of a kind untold":    {"Pod", `["hunter2"]`, "form"},
		"text for a number":           {"Deployment", `{"spec":{"replicas":"hunter2"}}`, "spec.replicas"},
		"a number that is too large":  {"DaemonSet", `{"status":{"numberAvailable":47110000000000}}`, "status"},
		"text for the status":         {"Service", `{"status":"hunter2"}`, "status"},
		"text for a condition":        {"Deployment", `{"status":{"conditions":["hunter2"]}}`, "status.conditions"},
		"a partition that is none":    {"CloneSet", `{"spec":{"updateStrategy":{"partition":"hunter2"}}}`, "partition"},
		"a percentage that is none":   {"CloneSet", `{"spec":{"updateStrategy":{"partition":"hunter2%"}}}`, "partition"},
		"an object for a partition":   {"StatefulSet", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":{"hunter2":1}}}}}`, "rollingUpdate"},
		"conditions that are no list": {"example.com/v1/machines=spec,rollout=Ready", `{"status":{"conditions":{"hunter2":true}}}`, "status.conditions"},
	} {
		t.Run(about, func(t *testing.T) {
			kind := kindOf(t, c.kind)
			got, err := kind.Status([]byte(c.raw))
			if err == nil || got != (workload.Status{}) {
				t.Fatalf("%+v, %v", got, err)
			}
			if text := err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "4711") || !strings.Contains(text, kind.Name) || !strings.Contains(text, c.names) {
				t.Errorf("%v; want %s, %s, and nothing of the object", err, kind.Name, c.names)
			}
		})
	}
}
