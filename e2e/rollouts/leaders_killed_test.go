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

	const beforeTheFirstRolls, whileItRolls, whenTheChangeHasHalted, whileStepsGoOn = "BeforeTheFirstRolls", "WhileTheFirstRolls", "WhenTheChangeHasHalted", "WhileStepsGoOn"
	failing := func(t *testing.T, killedAt string) {
		f := f.in(t)
		die := func(stage string) {
			if stage == killedAt {
				replaceControllers(t)
			}
		}
		f.edit("bad")
		die(beforeTheFirstRolls)
		f.wantRolls(1)
		die(whileItRolls)
		failed := f.wantHalt()
		f.wantCrashing(failed)
		die(whenTheChangeHasHalted)
		f.wantStill(failed)
		f.wantGauge(1, "configstamp_changes", `state="halted"`)
		f.wantGauge(float64(len(f.names)-1), "configstamp_halted_workloads", "")
		f.takeBack()
		f.wantServing()
		f.wantStill(failed)
		f.wantGauge(0, "configstamp_changes", `state="halted"`)
		f.wantServed()
		f.wantTruth()
	}
	for _, stage := range []string{beforeTheFirstRolls, whileItRolls, whenTheChangeHasHalted} {
		if !t.Run(stage, func(t *testing.T) { failing(t, stage) }) {
			return // the fleet is not what the next stage needs
		}
	}
	t.Run(whileStepsGoOn, func(t *testing.T) {
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

// wantRolls waits until some workloads have rolled since the last edit.
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
