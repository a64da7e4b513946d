package rollouts

import (
	"errors"
	"fmt"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Both controllers are killed at each stage of a change that fails, and others
// take over: what the cluster holds is all that they know, and the end is the
// same each time.
func TestControllersAreKilled(t *testing.T) {
	court.Run.Exclusive(t)
	f := newFleet(t, 5, strict)
	f.retold = true

	failing := func(t *testing.T, beforeTheFirst, whileItRolls, whenHalted func()) {
		f := f.in(t)
		f.edit("bad")
		beforeTheFirst()
		f.wantRolls(1)
		whileItRolls()
		failed := f.wantHalt()
		f.wantCrashing(failed)
		whenHalted()
		f.wantStill(failed)
		f.wantGauge(1, "configstamp_changes", `state="halted"`)
		f.wantGauge(float64(len(f.names)-1), "configstamp_held_workloads", "halt")
		f.takeBack()
		f.wantServing()
		f.wantStill(failed)
		f.wantGauge(0, "configstamp_changes", `state="halted"`)
		f.wantServed()
		f.wantTruth()
	}
	live := func() {}
	t.Run("BeforeTheFirstRolls", func(t *testing.T) { failing(t, func() { replaceControllers(t) }, live, live) })
	t.Run("WhileTheFirstRolls", func(t *testing.T) { failing(t, live, func() { replaceControllers(t) }, live) })
	t.Run("WhenTheChangeHasHalted", func(t *testing.T) { failing(t, live, live, func() { replaceControllers(t) }) })
	t.Run("WhileStepsGoOn", func(t *testing.T) {
		f := f.in(t)
		f.edit("bad")
		f.wantHalt()
		f.edit("good")
		f.wantRolls(2) // the second step has begun
		replaceControllers(t)
		f.wantRolledOut()
		f.wantServed()
		f.wantTruth()
	})
}

// replaceControllers kills both controllers at once, and starts two.
func replaceControllers(t *testing.T) {
	t.Helper()
	product := court.Run.Product
	killed := make(chan error, len(product.Controllers))
	for _, controller := range product.Controllers {
		go func() { killed <- controller.Kill() }()
	}
	for range product.Controllers {
		harness.Must(t, <-killed)
	}
	harness.Must(t, court.Run.ForgetLeader(t.Context()))
	harness.Must(t, product.Start(t.Context()))
}

// wantRolls waits until some Deployments have rolled since the last edit.
func (f *fleet) wantRolls(count int) {
	f.t.Helper()
	f.space.Eventually("waiting for rollouts", func() error {
		if rolls := f.seen().Rolls(f.since, soak); len(rolls) < count {
			return fmt.Errorf("there were %d, want %d", len(rolls), count)
		}
		return nil
	})
}

// wantGauge waits until the leader's gauge has a value.
func (f *fleet) wantGauge(want float64, metric, label string) {
	f.t.Helper()
	f.space.Eventually("waiting for a gauge", func() error {
		leader := court.Run.Product.Leader()
		if leader == nil {
			return errors.New("nobody leads")
		}
		if got := harness.Sum([]*harness.Process{leader}, metric, label); got != want {
			return fmt.Errorf("%s{%s} is %v, want %v", metric, label, got, want)
		}
		return nil
	})
}
