package faults_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Two leaders: one stands still, another takes its lease, and it wakes up and
// goes on until it notices.
func TestALeaderThatWakesUpBesideAnother(t *testing.T) {
	long(t, "a lease has to run out")
	_, trial := scenario(t)
	fanOut(t, trial, 8)
	stop := court.Supervise()
	defer stop()
	old := leader(t)
	harness.Must(t, trial.Set("configmap/c", value(1)))
	time.Sleep(100 * time.Millisecond) // its settle runs
	old.Freeze()
	time.Sleep(18 * time.Second)
	harness.Must(t, trial.Set("configmap/c", value(2)))
	time.Sleep(400 * time.Millisecond)
	old.Thaw()
	harness.Must(t, trial.Set("configmap/c", value(3)))
	trial.Judge(t, soon)
}
