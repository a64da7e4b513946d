package rollouts

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Ordinary events that once led around the promise: most workloads are held, a writer restores bad content,
// an autoscaler scales the workload on trial. Each time bad content reaches one workload, and good content
// reaches all.

// A pause holds all workloads but one, and the content crashes after forty seconds: longer than the soak,
// and shorter than the first soak of ten workloads. The pause ends between the soak and the crash.
func TestAPauseHoldsAllButOne(t *testing.T) {
	t.Parallel()
	f := openFleet(t)
	f.keepFirstSoak()
	f.fill(10, func(int) member { return member{manner: "latest"} })
	namespace, free := "namespace/"+f.Namespace, f.names[0]
	f.annotate(namespace, "pause", "true")
	f.annotate(free, "pause", "false")
	f.edit("bad")
	f.space.EventuallyIn(patience, "waiting for a rollout that is well for two soaks", func() error {
		rolls := f.seen().Rolls(f.since, soak)
		if len(rolls) == 0 || rolls[0].Done.IsZero() || time.Since(rolls[0].Done) < 2*soak {
			return fmt.Errorf("the rollouts are:\n%s", rolls)
		}
		return nil
	})
	f.annotate(namespace, "pause", "")
	failed := f.wantHalt()
	if failed != free {
		t.Errorf("%s took the edit, and only %s was not paused", failed, free)
	}
	f.wantMended(failed) // Kubernetes itself has replaced both its Pods before any crashed
}

// A person puts the good content back each time the rollout has failed. A tool such as Argo CD restores the
// bad content when the workload that failed has rolled back and is well.
func TestAToolRestoresBadContent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, strict)
	f.annotate("namespace/"+f.Namespace, "min-interval", "") // a workload that rolled often is slowed down, and others could go first
	f.steady = 2 * soak                                      // the tool comes when the put-back content is proven
	f.edit("bad")
	bad := content(fmt.Sprintf("bad-%d", *f.edits))
	failed := f.wantFailed()
	for range 3 {
		f.takeBack()
		f.wantRolledBack(failed)
		f.wantStill(failed)
		f.heard = time.Now()
		harness.Must(t, f.Set(source, bad))
		if again := f.wantFailed(); again != failed {
			t.Errorf("%s took the content that came again, want %s", again, failed)
		}
	}
	f.wantStill(failed)
	f.wantMended()
}

// So does a tool that comes while the workload that failed waits for its pace: its crashed containers have
// started again with the good content, under the stamp of the bad one.
func TestAToolRestoresBadContentBeforeTheNextRoll(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, strict)
	f.edit("bad")
	bad := content(fmt.Sprintf("bad-%d", *f.edits))
	failed := f.wantFailed()
	for range 4 { // from the third roll on, it waits for its pace
		f.takeBack()
		f.wantServing()
		f.wantStill(failed)
		harness.Must(t, f.Set(source, bad))
		f.wantStill(failed)
	}
	f.wantStill(failed)
	f.wantMended()
}

// wantRolledBack waits until a workload carries the content that its source holds, and is well. A container
// that crashes reads that content when it starts again: its workload is well before it rolls.
func (f *fleet) wantRolledBack(name string) {
	f.t.Helper()
	want := f.space.Digest(source)
	f.space.EventuallyIn(patience, "waiting for "+name+" to roll back", func() error {
		if got := f.space.Stamp(name, source); got != want {
			return fmt.Errorf("its stamp is %q, want %q", got, want)
		}
		return nil
	})
	f.wantServing()
}

// An autoscaler scales the first workload while it is on trial, more often than the first soak lasts. Each
// new Pod takes some seconds until it is available.
func TestAnAutoscalerScalesTheFirst(t *testing.T) {
	t.Parallel()
	f := openFleet(t)
	f.keepFirstSoak()
	f.fill(4, func(i int) member {
		m := strict(i)
		if i == 0 {
			m.order, m.minReady = "1", 5
		}
		return m
	})
	first := f.names[0]
	f.edit("bad")
	f.wantRolls(1)
	stop := f.autoscale(first)
	if failed := f.wantHalt(); failed != first {
		t.Errorf("%s took the edit, and %s alone has an order", failed, first)
	}
	stop()

	f.edit("good")
	f.wantRolls(1)
	stop = f.autoscale(first)
	f.wantAllRoll()
	stop()
	f.wantServing()
	f.wantServed()
	f.wantTruth()
}

// autoscale scales a workload of two replicas up and down until stop is called.
func (f *fleet) autoscale(name string) (stop func()) {
	f.t.Helper()
	const few, many, every = 2, 3, 10 * time.Second
	asked, done := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for replicas := int64(many); ; replicas = few + many - replicas {
			if err := f.Scale(name, replicas); err != nil {
				done <- err
				return
			}
			select {
			case <-asked:
				done <- f.Scale(name, few)
				return
			case <-tick.C:
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(asked)
		harness.Must(f.t, <-done)
	})
	f.t.Cleanup(stop)
	return stop
}
