package workload_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/internal/workload"
)

// Whatever arrives as an object of whatever kind, or as a list of pods, reading it
// does not panic, and what is read agrees with itself.
func FuzzStatus(f *testing.F) {
	kinds := append(workload.Builtin(), workload.Known()...)
	for _, text := range []string{"example.com/v1/machines=spec.pod,rollout=Ready", "example.com/v1/others=spec.pod"} {
		kind, err := workload.ParseKind(text)
		if err != nil {
			f.Fatal(err)
		}
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		for _, is := range []string{"True", "False"} {
			f.Add(fmt.Appendf(nil, `{"metadata":{"generation":2},"spec":{"replicas":3,"minReadySeconds":1,"selector":{"matchLabels":{"app":"web"}},"updateStrategy":{"partition":"30%%","rollingUpdate":{"partition":1}}},
				"status":{"observedGeneration":"2","phase":"Degraded","replicas":3,"updatedReplicas":3,"updatedReadyReplicas":3,"availableReplicas":3,"desiredNumberScheduled":2,"updatedNumberScheduled":2,"numberAvailable":2,
				"conditions":[{"type":%q,"status":%q,"reason":"NewReplicaSetAvailable","lastUpdateTime":"2026-03-01T12:00:00Z"}]}}`, kind.Progress, is))
		}
	}
	f.Add([]byte(`{"spec":{"replicas":-2147483648,"minReadySeconds":-1,"selector":{"a":"b"}},"status":{"updatedReplicas":2147483647,"availableReplicas":-2147483648,"desiredNumberScheduled":2147483647,"numberAvailable":-2147483648}}`))
	f.Add([]byte(`{"kind":"PodList","metadata":{"continue":"x"},"items":[{"metadata":{"name":"a","annotations":{"secret.configstamp.dev/a":"x"}},"spec":{"containers":[{"name":"c"}]},
		"status":{"containerStatuses":[{"name":"c","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range kinds {
			status, err := kind.Status(raw)
			switch {
			case err != nil && status != (workload.Status{}):
				t.Fatalf("%s: %v, and %+v", kind.Name, err, status)
			case err == nil && (status.Waits != "" && status.Phase != workload.Unreported ||
				status.Phase == workload.Unreported && status.Waits == "" && (kind.Progress != "" || kind.Signs.Counts != workload.NoCounts)):
				t.Fatalf("%s: phase %d waits for %q", kind.Name, status.Phase, status.Waits)
			case status.Missing < 0 || status.Wanted < 0 || status.MinReady < 0:
				t.Fatalf("%s: %+v", kind.Name, status)
			case status.Phase == workload.RolledOut && status.Missing > 0 || status.Phase != workload.Failed && (status.Why != "" || !status.FailedAt.IsZero()):
				t.Fatalf("%s: %+v", kind.Name, status)
			}
			if selector, err := kind.Selector(raw); err == nil {
				if _, err := labels.Parse(selector); err != nil {
					t.Fatalf("%s: selector %q: %v", kind.Name, selector, err)
				}
			}
		}
		pods, next, err := workload.Pods(raw)
		if err != nil && (pods != nil || next != "") {
			t.Fatalf("%v, and %v", err, pods)
		}
		for i := range pods {
			if len(pods[i].Stamps) > 0 && !pods[i].Carries(pods[i].Stamps) {
				t.Fatalf("%+v does not carry what it carries", pods[i])
			}
		}
	})
}
