package workload_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// What is read from protobuf is what is read from JSON.
func TestRunningPod_BothFormsSayTheSame(t *testing.T) {
	messages := workload.NewPodMessages()
	for seed := range uint64(300) {
		var pod corev1.Pod
		filler{rand.New(rand.NewPCG(seed, 1)), 1 + int(seed%4)}.fill(reflect.ValueOf(&pod).Elem())
		message, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(&pod)
		if err != nil {
			t.Fatal(err)
		}
		fromMessage, err := messages.Read(message)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		fromText, err := workload.ReadRunningPod(text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(checksum.References(fromText.Spec), checksum.References(fromMessage.Spec), cmpopts.EquateEmpty(), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Fatalf("seed %d: JSON and protobuf reference differently:\n%s", seed, diff)
		}
		fromText.Spec, fromMessage.Spec = nil, nil
		if diff := cmp.Diff(fromText, fromMessage, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("seed %d: JSON and protobuf differ:\n%s", seed, diff)
		}
	}
}

const aPod = `{"metadata":{"name":"web-7d9-x","namespace":"shop","uid":"u","resourceVersion":"7","creationTimestamp":"2026-06-01T12:00:00Z",
"labels":{"pod-template-hash":"7d9"},"annotations":{"configmap.configstamp.dev/a":"v1:absent","other":"x"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d9","uid":"r","controller":true}]},
"spec":{"nodeName":"n","initContainers":[{"name":"fetch"},{"name":"proxy","restartPolicy":"Always"}],"containers":[{"name":"web"},{"name":"log"}]},
"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}],
"initContainerStatuses":[{"name":"fetch","state":{"terminated":{"startedAt":"2026-06-01T12:00:01Z"}}},{"name":"proxy","restartCount":2,"state":{"terminated":{"startedAt":"2026-06-01T12:00:02Z"}}}],
"containerStatuses":[{"name":"log","restartCount":1,"state":{"running":{"startedAt":"2026-06-01T12:09:00Z"}}},{"name":"web","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`

func TestRunningPod_Reads(t *testing.T) {
	pod, err := workload.ReadRunningPod([]byte(aPod))
	if err != nil {
		t.Fatal(err)
	}
	at := func(minute, second int) time.Time { return time.Date(2026, 6, 1, 12, minute, second, 0, time.UTC) }
	want := []workload.RunningContainer{{Name: "fetch", Started: at(0, 1)}, {Name: "proxy", Restarted: true}, {Name: "web"}, {Name: "log", Started: at(9, 0), Restarted: true}}
	if diff := cmp.Diff(want, pod.Containers); diff != "" {
		t.Errorf("containers:\n%s", diff)
	}
	if pod.Lost || pod.Finished || !pod.Created.Equal(at(0, 0)) || len(pod.Stamps) != 1 || pod.Hash != "7d9" || pod.Owner.Name != "web-7d9" || pod.UID != "u" {
		t.Errorf("it reads %+v", pod)
	}
}

// A node that does not answer is seen by what others than the kubelet write.
func TestRunningPod_Lost(t *testing.T) {
	for sentence, c := range map[string]struct {
		status string
		want   bool
	}{
		"ready":                           {`"conditions":[{"type":"Ready","status":"True"}]`, false},
		"not ready, says the kubelet":     {`"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}]`, false},
		"not ready, says somebody else":   {`"conditions":[{"type":"Ready","status":"False"}]`, true},
		"unknown":                         {`"conditions":[{"type":"Ready","status":"Unknown","reason":"x"}]`, true},
		"another condition":               {`"conditions":[{"type":"Initialized","status":"False"}]`, false},
		"its node is lost":                {`"reason":"NodeLost"`, true},
		"evicted, which is another thing": {`"reason":"Evicted"`, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			pod, err := workload.ReadRunningPod([]byte(`{"status":{` + c.status + `}}`))
			if err != nil {
				t.Fatal(err)
			}
			if pod.Lost != c.want {
				t.Errorf("lost: %t, want %t", pod.Lost, c.want)
			}
		})
	}
}

func TestTable_Makers(t *testing.T) {
	table := workload.Builtin().With(workload.Known()...)
	for sentence, c := range map[string]struct {
		version, kind, name, hash string
		want                      []string
	}{
		"a ReplicaSet of a Deployment, or of a Rollout": {"apps/v1", "ReplicaSet", "web-7d9", "7d9", []string{"Deployment web", "ReplicaSet web-7d9", "Rollout web"}},
		"a ReplicaSet of its own":                       {"apps/v1", "ReplicaSet", "web-7d9", "", []string{"ReplicaSet web-7d9"}},
		"a StatefulSet":                                 {"apps/v1", "StatefulSet", "db-0", "", []string{"StatefulSet db-0"}},
		"a Job of a CronJob":                            {"batch/v1", "Job", "night-2901", "", []string{"CronJob night", "Job night-2901"}},
		"a CloneSet":                                    {"apps.kruise.io/v1alpha1", "CloneSet", "web", "", []string{"CloneSet web"}},
		"a DeploymentConfig's":                          {"v1", "ReplicationController", "web-3", "", []string{"ReplicationController web-3", "DeploymentConfig web"}},
		"somebody else's ReplicaSet":                    {"apps.example.com/v1", "StatefulSet", "db", "", nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, maker := range table.Makers(metav1.OwnerReference{APIVersion: c.version, Kind: c.kind, Name: c.name}, c.hash) {
				got = append(got, maker.People())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whatever arrives, reading it does not panic, in either form.
func FuzzRunningPod(f *testing.F) {
	f.Add([]byte(aPod))
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(aPod), &pod); err != nil {
		f.Fatal(err)
	}
	message, err := pod.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	messages := workload.NewPodMessages()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]byte) (*workload.RunningPod, error){workload.ReadRunningPod, messages.Read} {
			if pod, err := read(data); (err == nil) != (pod != nil) {
				t.Fatalf("a pod %v with error %v", pod, err)
			}
		}
	})
}

// Pods of others may have the labels of a workload.
func TestTable_MadeBy(t *testing.T) {
	table := workload.Builtin().With(workload.Known()...)
	find := func(group, resource string) workload.Ref {
		kind, _ := table.Find(group, resource)
		return workload.Ref{Kind: kind, Namespace: "shop", Name: "web"}
	}
	owner := func(version, kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: "other"}
	}
	for sentence, c := range map[string]struct {
		of   workload.Ref
		pod  workload.Pod
		want bool
	}{
		"its own":                   {find("apps", "statefulsets"), workload.Pod{Owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "it"}}, true},
		"its ReplicaSet's":          {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-7d9"), Hash: "7d9"}, true},
		"another Deployment's":      {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-app-7d9"), Hash: "7d9"}, false},
		"a ReplicaSet's of its own": {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-7d9")}, false},
		"a Job's":                   {find("apps", "deployments"), workload.Pod{Owner: owner("batch/v1", "Job", "web-7d9")}, false},
		"a StatefulSet's":           {find("apps", "deployments"), workload.Pod{Owner: owner("apps/v1", "StatefulSet", "web")}, false},
		"a Rollout's":               {find("argoproj.io", "rollouts"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-7d9"), Hash: "7d9"}, true},
		"a DeploymentConfig's":      {find("apps.openshift.io", "deploymentconfigs"), workload.Pod{Owner: owner("v1", "ReplicationController", "web-3")}, true},
		"another Rollout's":         {find("argoproj.io", "rollouts"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-app-7d9"), Hash: "7d9"}, false},
		"a Deployment's, which a custom resource may have made": {find("serving.knative.dev", "services"), workload.Pod{Owner: owner("apps/v1", "ReplicaSet", "web-1-7d9"), Hash: "7d9"}, true},
		"nobody's yet":                   {find("apps", "deployments"), workload.Pod{}, true},
		"of what may stand between them": {find("apps", "deployments"), workload.Pod{Owner: owner("example.com/v1", "PodSet", "x")}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := table.MadeBy(c.of, "it", &c.pod); got != c.want {
				t.Errorf("it counts: %t, want %t", got, c.want)
			}
		})
	}
}
