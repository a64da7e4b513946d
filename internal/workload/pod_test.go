package workload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configstamp/configstamp/internal/workload"
)

// running is a pod of one init container, a sidecar and a container, that all went
// well; changes make it what a case needs.
func running(changes ...func(*corev1.Pod)) corev1.Pod {
	state := func(name string, at time.Time) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{"a": "b", "secret.configstamp.dev/db": "x"}},
		Spec: corev1.PodSpec{
			NodeName:       "node-1",
			InitContainers: []corev1.Container{{Name: "setup"}, {Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}},
			Containers:     []corev1.Container{{Name: "web"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "setup", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}, state("proxy", noon.Add(time.Second)),
			},
			ContainerStatuses: []corev1.ContainerStatus{state("web", noon.Add(2*time.Second))},
		},
	}
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

// waiting has a container wait for a reason: web, or the i-th init container.
func waiting(reason string, init ...int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		status := &p.Status.ContainerStatuses[0]
		for _, i := range init {
			status = &p.Status.InitContainerStatuses[i]
		}
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "hunter2"}}
	}
}

// gate gives the pod two readiness gates, of which the first is set; containers is the condition
// ContainersReady.
func gate(containers corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/first"}, {ConditionType: "example.com/second"}}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/first", Status: corev1.ConditionTrue},
			corev1.PodCondition{Type: corev1.ContainersReady, Status: containers})
	}
}

// ended has the container that runs be restarted, after one that ended so.
func ended(reason string, code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].RestartCount = 3
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: "hunter2"}
	}
}

func TestPods(t *testing.T) {
	stamps := map[string]string{"secret.configstamp.dev/db": "x"}
	well := workload.Pod{Name: "web-1", Node: "node-1", Stamps: stamps, Created: noon, Ready: true, Started: noon.Add(2 * time.Second)}
	want := func(change func(*workload.Pod)) workload.Pod {
		pod := well
		change(&pod)
		return pod
	}
	for about, c := range map[string]struct {
		pod  corev1.Pod
		want workload.Pod
	}{
		"it runs": {running(), well},
		"not ready": {running(func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }),
			want(func(p *workload.Pod) { p.Ready = false })},
		"it goes": {running(func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(later)), ptr.To(int64(60))
		}), want(func(p *workload.Pod) { p.Deleting, p.Ending, p.Grace = true, later.Add(-time.Minute), time.Minute })},
		"it is a ReplicaSet's": {running(func(p *corev1.Pod) {
			p.Labels = map[string]string{"pod-template-hash": "7d9"}
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "n"}, {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d9", UID: "u", Controller: ptr.To(true)}}
		}), want(func(p *workload.Pod) {
			p.Hash, p.Owner = "7d9", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d9", UID: "u", Controller: ptr.To(true)}
		})},
		"it failed":    {running(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), want(func(p *workload.Pod) { p.Finished = true })},
		"it succeeded": {running(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), want(func(p *workload.Pod) { p.Finished = true })},
		"without stamps": {running(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }),
			want(func(p *workload.Pod) { p.Stamps = nil })},
		"new, on no node": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}, Status: corev1.PodStatus{Phase: corev1.PodPending}},
			workload.Pod{Name: "web-1"}},
		"no node has room": {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "hunter2"}}}},
			workload.Pod{Name: "web-1", Unscheduled: "Unschedulable"}},
		"its node refuses it": {running(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "OutOfnvidia.com/gpu", "hunter2"
		}),
			want(func(p *workload.Pod) { p.Finished, p.Reason = true, "OutOfnvidia.com/gpu" })},
		"a reason that is no word": {running(func(p *corev1.Pod) { p.Status.Reason = "hunter2 was wrong" }), well},
		"a readiness gate is not set": {running(gate(corev1.ConditionTrue), func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }),
			want(func(p *workload.Pod) { p.Ready, p.Gate = false, "example.com/second" })},
		"nor is a container ready": {running(gate(corev1.ConditionFalse), func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }),
			want(func(p *workload.Pod) { p.Ready = false })},
		"a container starts": {running(waiting("ContainerCreating")), want(func(p *workload.Pod) { p.Started = time.Time{} })},
		"a container crashes": {running(waiting("CrashLoopBackOff"), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 }),
			want(func(p *workload.Pod) {
				p.Started, p.Trouble, p.Restarted = time.Time{}, "container web: CrashLoopBackOff", true
			})},
		"and how it ended last": {running(waiting("CrashLoopBackOff"), ended("OOMKilled", 137)),
			want(func(p *workload.Pod) {
				p.Started, p.Trouble, p.Restarted, p.Crashed, p.Ended = time.Time{}, "container web: CrashLoopBackOff", true, true, "OOMKilled with exit code 137"
			})},
		"a container has ended, and runs again":      {running(ended("Error", 1)), want(func(p *workload.Pod) { p.Restarted, p.Crashed, p.Ended = true, true, "Error with exit code 1" })},
		"it ended for a reason that is not one word": {running(ended("hunter2 was wrong", 2)), want(func(p *workload.Pod) { p.Restarted, p.Crashed, p.Ended = true, true, "exit code 2" })},
		"a word that is not the kubelet's":           {running(waiting("hunter2")), want(func(p *workload.Pod) { p.Started = time.Time{} })},
		"an init container lacks its source": {running(waiting("CreateContainerConfigError", 0), waiting("PodInitializing")),
			want(func(p *workload.Pod) {
				p.Started, p.Trouble = time.Time{}, "container setup: CreateContainerConfigError"
			})},
		"init containers count first": {running(waiting("ErrImagePull", 0), waiting("ImagePullBackOff")),
			want(func(p *workload.Pod) { p.Started, p.Trouble = time.Time{}, "container setup: ErrImagePull" })},
		"a sidecar does not run": {running(waiting("RunContainerError", 1)),
			want(func(p *workload.Pod) { p.Started, p.Trouble = time.Time{}, "container proxy: RunContainerError" })},
		"a sidecar started last, again": {running(func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[1].RestartCount = 1
			p.Status.InitContainerStatuses[1].State.Running.StartedAt = metav1.NewTime(later)
		}), want(func(p *workload.Pod) { p.Started, p.Restarted = later, true })},
		"an init container needed two tries": {running(func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].RestartCount = 1 }),
			want(func(p *workload.Pod) { p.Restarted = true })},
		"a container that is not told of": {running(func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log"}) }),
			want(func(p *workload.Pod) { p.Started = time.Time{} })},
	} {
		t.Run(about, func(t *testing.T) {
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{Continue: "more"}, Items: []corev1.Pod{c.pod, running()}}
			pods, next, err := workload.Pods(jsonOf(t, list))
			if err != nil || next != "more" {
				t.Fatalf("next %q, %v", next, err)
			}
			if diff := cmp.Diff([]workload.Pod{c.want, well}, pods); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadablePods(t *testing.T) {
	for about, raw := range map[string]string{
		"nothing":            ``,
		"no JSON":            `hunter2`,
		"broken off":         `{"items":[{"metadata":{"name":"hunter2`,
		"a list":             `["hunter2"]`,
		"an error":           `{"kind":"Status","message":"hunter2"}`,
		"text for items":     `{"items":"hunter2"}`,
		"text for a pod":     `{"items":["hunter2"]}`,
		"text for a time":    `{"items":[{"metadata":{"creationTimestamp":"hunter2"}}]}`,
		"text for a number":  `{"items":[{"status":{"containerStatuses":[{"restartCount":"hunter2"}]}}]}`,
		"number for a label": `{"items":[{"metadata":{"annotations":{"hunter2":4711}}}]}`,
	} {
		t.Run(about, func(t *testing.T) {
			pods, next, err := workload.Pods([]byte(raw))
			if err == nil || pods != nil || next != "" {
				t.Fatalf("%v, %q, %v", pods, next, err)
			}
			if text := err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, "4711") || !strings.Contains(text, "list of pods") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestCarries(t *testing.T) {
	stamps := map[string]string{"secret.configstamp.dev/a": "x", "configmap.configstamp.dev/b": "y"}
	for about, c := range map[string]struct {
		pod, template map[string]string
		want          bool
	}{
		"the same":             {map[string]string{"secret.configstamp.dev/a": "x", "configmap.configstamp.dev/b": "y"}, stamps, true},
		"another value":        {map[string]string{"secret.configstamp.dev/a": "x", "configmap.configstamp.dev/b": "z"}, stamps, false},
		"one less":             {map[string]string{"secret.configstamp.dev/a": "x"}, stamps, false},
		"one more":             {stamps, map[string]string{"secret.configstamp.dev/a": "x"}, false},
		"none on the pod":      {nil, stamps, false},
		"none on the template": {stamps, nil, false},
		"none at all":          {nil, map[string]string{}, false},
	} {
		if got := (&workload.Pod{Stamps: c.pod}).Carries(c.template); got != c.want {
			t.Errorf("%s: %v", about, got)
		}
	}
}

// A later release may mark the Pods of a template that this one looks at.
func TestAPinnedPodCarriesTheStampsOfItsTemplate(t *testing.T) {
	deployment := decode(t, kindNamed(t, "Deployment"), `{"spec":{"template":{"metadata":{"annotations":{"secret.configstamp.dev/a":"x","configstamp.dev/pins":"{}"}}}}}`)
	records, err := deployment.Records()
	if err != nil {
		t.Fatal(err)
	}
	pods, _, err := workload.Pods([]byte(`{"items":[{"metadata":{"annotations":{"secret.configstamp.dev/a":"x","configstamp.dev/pins":"{}","configstamp.dev/pinned":"{}"}}}]}`))
	if err != nil || len(pods) != 1 || !pods[0].Carries(records.Stamps) {
		t.Errorf("%+v does not carry %v: %v", pods, records.Stamps, err)
	}
}

func TestSelector(t *testing.T) {
	byLabels := func(raw string) string { return `{"metadata":{"labels":{"x":"y"}},"spec":{"selector":` + raw + `}}` }
	for about, c := range map[string]struct {
		kind   string
		object any
		want   string
	}{
		"labels": {"Deployment", appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front", "app": "web"}}}}, "app=web,tier=front"},
		"expressions": {"StatefulSet", appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "db"},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"b", "a"}}, {Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
			}}}}, "app=db,!old,tier in (a,b)"},
		"expressions alone":             {"CloneSet", byLabels(`{"matchExpressions":[{"key":"app","operator":"Exists"}]}`), "app"},
		"a plain map":                   {"DeploymentConfig", byLabels(`{"name":"web","deploymentconfig":"web"}`), "deploymentconfig=web,name=web"},
		"none":                          {"Service", `{"spec":{"template":{}}}`, ""},
		"no spec":                       {"Deployment", `{}`, ""},
		"null":                          {"Deployment", byLabels(`null`), ""},
		"an empty one, which means all": {"Deployment", byLabels(`{}`), ""},
	} {
		t.Run(about, func(t *testing.T) {
			if got, err := kindOf(t, c.kind).Selector(jsonOf(t, c.object)); err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
	for about, raw := range map[string]string{
		"no JSON":           `hunter2`,
		"text":              byLabels(`"hunter2"`),
		"a list":            byLabels(`["hunter2"]`),
		"a list of labels":  byLabels(`{"matchLabels":["hunter2"]}`),
		"no label's value":  byLabels(`{"matchLabels":{"a":"hunter2 and more"}}`),
		"no label's key":    byLabels(`{"hunter2 and more":"a"}`),
		"a strange operand": byLabels(`{"matchExpressions":[{"key":"a","operator":"hunter2"}]}`),
	} {
		t.Run(about, func(t *testing.T) {
			got, err := kindNamed(t, "Deployment").Selector([]byte(raw))
			if err == nil || got != "" || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "selector of a Deployment") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A kubelet gives a reason and a message with each of its conditions.
func TestNodeReady(t *testing.T) {
	const node = `{"status":{"conditions":[{"type":"MemoryPressure","status":"False","reason":"KubeletHasSufficientMemory"},{"type":"Ready","status":%q,"reason":"KubeletReady","message":"kubelet is posting ready status"}]}}`
	for status, want := range map[string]bool{"True": true, "False": false, "Unknown": false} {
		if got, err := workload.NodeReady(fmt.Appendf(nil, node, status)); got != want || err != nil {
			t.Errorf("Ready is %s: %t, %v", status, got, err)
		}
	}
	if got, err := workload.NodeReady([]byte(`{"status":{}}`)); got || err != nil {
		t.Errorf("without conditions: %t, %v", got, err)
	}
	if _, err := workload.NodeReady([]byte(`{"status":7}`)); err == nil {
		t.Error("what is no node is read without an error")
	}
}
