package rollouts

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What the gate has of this package: of four Deployments exactly one is touched by a bad
// edit, and all are well after it was put back. It is judged by specs and Pods that were
// written, never by when.
func TestGate_ABadEditStopsAtOne(t *testing.T) {
	f := newFleet(t, 4, strict)
	f.edit("bad")
	failed := f.wantOneCrashing()
	f.takeBack()
	f.wantServing()
	if rolled := f.seen().Rolled(f.since); len(rolled) != 1 {
		t.Errorf("%d workloads rolled by a bad edit and its way back, want %s alone:\n%s", len(rolled), failed, listing(rolled))
	}
	if got, want := f.space.Stamp(failed, source), f.space.Digest(source); got != want {
		t.Errorf("the stamp of %s is not that of what was put back", failed)
	}
}

// crashes is how often a Pod has to have crashed until its workload alone is taken for
// touched: longer than the product needs to tell that it has failed, and to go on if that
// would not stop it.
const crashes = 3

// wantOneCrashing waits until the Pod of one workload has crashed again and again, and its
// rollout has failed. A second one that rolls meanwhile ends the test at once.
func (f *fleet) wantOneCrashing() (failed string) {
	f.t.Helper()
	f.space.EventuallyIn(patience, "waiting for a workload whose new Pod crashes", func() error {
		rolled := f.seen().Rolled(f.since)
		if len(rolled) > 1 {
			f.t.Fatalf("the bad edit reached %d workloads, want one:\n%s", len(rolled), listing(rolled))
		}
		for name := range rolled {
			failed = f.name(name)
		}
		if failed == "" {
			return fmt.Errorf("none has rolled")
		}
		if times := f.restarts(failed); times < crashes {
			return fmt.Errorf("a Pod of %s has crashed %d times, %d are waited for", failed, times, crashes)
		}
		return f.says(failed, "RolloutFailed", "")
	})
	return failed
}

// restarts is how often a container of one Pod of a workload has started again.
func (f *fleet) restarts(name string) int {
	f.t.Helper()
	pods, err := court.Run.Client.CoreV1().Pods(f.Namespace).List(f.t.Context(), metav1.ListOptions{LabelSelector: "app=" + appOf(name)})
	harness.Must(f.t, err)
	times := 0
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			times = max(times, int(status.RestartCount))
		}
	}
	return times
}
