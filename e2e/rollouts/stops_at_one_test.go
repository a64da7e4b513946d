package rollouts

import (
	"strings"
	"testing"
)

// A fleet of twenty, and an edit with which the app does not start.
func TestABadEditStopsAtOne(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 20, strict)
	f.edit("bad")
	failed := f.wantHalt()
	f.wantCrashing(failed)
	f.wantServed()

	f.takeBack()
	f.wantServing()
	f.wantStill(failed)
	f.wantServed()
	f.wantTruth()

	f.edit("bad")
	failed = f.wantHalt()
	f.wantCrashing(failed)
	f.edit("good")
	f.wantRolledOut()
	f.wantServed()
	f.wantTruth()
}

// An app without a readiness probe that crashes three seconds after its start:
// its Pods are ready before. minReadySeconds outlasts that even when the kubelet is
// late to tell of the crash: else Kubernetes itself goes on to the second Pod.
func TestALateCrashStopsAtOne(t *testing.T) {
	t.Parallel()
	for name, minReady := range map[string]int{"WithMinReadySeconds": 10, "Without": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 5, func(int) member { return member{manner: "late", minReady: minReady} })
			f.edit("bad")
			failed := f.wantHalt()
			f.wantCrashing(failed)
			var lost []string
			if minReady == 0 { // Kubernetes itself has replaced both Pods before any crashed
				lost = append(lost, failed)
			}
			f.wantServed(lost...)

			f.takeBack()
			f.wantServing()
			f.wantStill(failed)
			f.wantServed(lost...)
			f.wantTruth()
		})
	}
}

// Other kinds than Deployments, each with Deployments that go after it.
func TestABadEditStopsAtOneOfAnyKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, func(i int) member {
				if i == 1 {
					return member{kind: kind, manner: "strict", probe: true, order: "1"}
				}
				return strict(i)
			})
			f.edit("bad")
			failed := f.wantHalt()
			f.wantCrashing(failed)
			if want := strings.ToLower(kind) + "/app-01"; failed != want {
				t.Errorf("%s went first, want %s", failed, want)
			}
			f.takeBack()
			f.wantServing()
			f.wantStill(failed)
			f.wantServed()
			f.wantTruth()
		})
	}
}
