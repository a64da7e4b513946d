package rollouts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A bad edit in the ordinary cases: the content crashes late, each workload lacks a Pod,
// all roll anyway, leaders change. Each time it reaches one.

// rounds is how often each is tried.
const rounds = 2

// Content that crashes after fifteen seconds: longer than a rollout has to stay well, but
// for the first (--first-soak, here by the setting of the Namespace).
func TestACrashAfterFifteenSecondsStopsAtOne(t *testing.T) {
	t.Parallel()
	f := openFleet(t)
	f.steady = 30 * time.Second
	f.annotate("namespace/"+f.Namespace, "soak", f.steady.String())
	f.fill(4, func(int) member { return member{manner: "later"} })
	for range rounds {
		f.edit("bad")
		failed := f.wantHalt()
		f.takeBack()
		f.wantServing()
		f.wantStill(failed)
	}
	f.wantTruth()
}

// Of each workload a Pod finds no node: its new Pods never are all there, be the content
// good or bad, and its own controller says that it has failed.
func TestEachLacksAPod(t *testing.T) {
	t.Parallel()
	f := openFleet(t)
	const size, replicas, seats = 4, 3, 2
	seat := func(i int) string { return fmt.Sprintf("%s.example.com/app-%02d", f.Namespace, i) }
	given := map[string]int{}
	for i := range size {
		given[seat(i)] = seats
	}
	giveSeats(t, given)
	f.serves = func(object *unstructured.Unstructured) bool {
		var d appsv1.Deployment
		harness.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d))
		return d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == replicas && d.Status.UpdatedReplicas == replicas && d.Status.AvailableReplicas == seats
	}
	f.fill(size, func(i int) member {
		spec := fmt.Sprintf("replicas: %d, progressDeadlineSeconds: 20, strategy: {rollingUpdate: {maxUnavailable: 2, maxSurge: 0}}", replicas)
		return member{manner: "strict", probe: true, spec: spec, seat: seat(i)}
	})
	for range rounds {
		f.edit("bad")
		failed := f.wantHalt()
		if f.restarts(failed) == 0 {
			t.Errorf("%s has failed, and none of its Pods has crashed", failed)
		}
		f.edit("good")
		f.space.EventuallyIn(patience, "waiting for every workload to roll", func() error {
			if times := f.seen().Rolls(f.since, soak).Times(); len(times) < size {
				return fmt.Errorf("%d of %d have", len(times), size)
			}
			return nil
		})
		f.wantServing()
		f.wantGivenUp()
		for _, about := range f.names {
			f.wantUnsaid(about, "RolloutFailed")
		}
		f.wantUnsaid(source, "ChangeHalted")
	}
	f.wantServed()
	f.wantTruth()
}

// wantGivenUp waits until the workloads' own controllers say of all that they have failed, as
// they do of what lacks a Pod.
func (f *fleet) wantGivenUp() {
	f.t.Helper()
	f.space.Eventually("waiting for the workloads' own deadlines", func() error {
		for _, name := range f.names {
			object, err := f.space.TryGet(name)
			if err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			if !strings.Contains(fmt.Sprint(conditions), "ProgressDeadlineExceeded") {
				return fmt.Errorf("%s has not come", name)
			}
		}
		return nil
	})
}

// giveSeats has the node say that it has some of a resource that no other Pod wants.
func giveSeats(t *testing.T, seats map[string]int) {
	t.Helper()
	nodes := court.Run.Client.CoreV1().Nodes()
	list, err := nodes.List(t.Context(), metav1.ListOptions{})
	harness.Must(t, err)
	capacity := ""
	for _, name := range slices.Sorted(maps.Keys(seats)) {
		if capacity != "" {
			capacity += ","
		}
		capacity += fmt.Sprintf("%q:%q", name, strconv.Itoa(seats[name]))
	}
	_, err = nodes.Patch(t.Context(), list.Items[0].Name, types.MergePatchType, []byte(`{"status":{"capacity":{`+capacity+`}}}`), metav1.PatchOptions{}, "status")
	harness.Must(t, err)
}

// Somebody rolls all workloads to another release, and while they are at it a bad edit
// comes. New Pods of the release were started before.
func TestAReleaseOfAllIsRolling(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, func(int) member {
		return member{manner: "strict", probe: true, minReady: 20, spec: "replicas: 2, strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}"}
	})
	for round := range rounds {
		for _, name := range f.names {
			harness.Must(t, f.Patch(name, fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"release":"%d"}}}}}`, round)))
		}
		f.space.EventuallyIn(patience, "waiting for the Pods of the release to run", func() error {
			for _, name := range f.names {
				object, err := f.space.TryGet(name)
				if err != nil {
					return err
				}
				if status := object.Object["status"]; !running(object, 4) {
					return fmt.Errorf("those of %s do not: %v", name, status)
				}
			}
			return nil
		})
		f.edit("bad")
		failed := f.wantOneStamped()
		f.wantSaid(source, "ChangeHalted", appOf(failed))
		f.takeBack()
		f.wantServing()
		if rolls := f.seen().Rolls(f.since, soak).Times(); len(rolls) != 1 {
			t.Errorf("a bad edit and its way back rolled %d workloads, want one: %v", len(rolls), rolls)
		}
	}
	f.wantServed()
	f.wantTruth()
}

// running reports whether so many Pods of a Deployment are ready, two of them new, and
// it is not rolled out.
func running(object *unstructured.Unstructured, ready int64) bool {
	count := func(field string) int64 {
		n, _, _ := unstructured.NestedInt64(object.Object, "status", field)
		return n
	}
	return count("observedGeneration") >= object.GetGeneration() && count("updatedReplicas") == 2 && count("readyReplicas") == ready
}

// wantOneStamped waits until a workload has taken the last edit and failed, and checks
// that for longer than a step would take no other takes it.
func (f *fleet) wantOneStamped() (failed string) {
	f.t.Helper()
	one := func() error {
		times := f.seen().Rolls(f.since, soak).Times()
		if len(times) > 1 {
			f.t.Fatalf("the bad edit reached %d workloads, want one: %v", len(times), times)
		}
		for name := range times {
			failed = f.name(name)
			return f.says(failed, "RolloutFailed", "")
		}
		return fmt.Errorf("none has taken it")
	}
	f.space.EventuallyIn(patience, "waiting for a rollout that fails", one)
	f.passStep()
	harness.Must(f.t, one())
	return failed
}

// The old Pods of the first workload take long to end, and no new one is made before. While
// they do both controllers are killed: others must not take that one for rolled out, nor for
// one that never ran.
func TestLeadersChangeWhileOldPodsEnd(t *testing.T) {
	court.Run.Exclusive(t)
	f := newFleet(t, 4, func(int) member {
		return member{manner: "slow", probe: true, spec: "replicas: 2, strategy: {type: Recreate}", grace: 30}
	})
	f.retold = true
	for range rounds {
		f.edit("bad")
		f.wantRolls(1)
		replaceControllers(t)
		failed := f.wantHalt()
		f.wantCrashing(failed)
		f.takeBack()
		f.wantServing()
		f.wantStill(failed)
	}
	f.wantTruth()
}
