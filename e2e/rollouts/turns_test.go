package rollouts

import (
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Whose turn it is.

func TestOrderSaysWhoGoesFirst(t *testing.T) {
	t.Parallel()
	orders := []string{"3", "", "20", "-1"} // app-03, then app-00 and app-02, then app-01
	f := newFleet(t, len(orders), func(i int) member { return member{manner: "strict", probe: true, order: orders[i]} })
	f.edit("good")
	f.wantRolledOut()
	if went := f.went(); went[0] != "deployment/app-03" || went[3] != "deployment/app-01" {
		t.Errorf("they went in the order %v, want app-03 first and app-01 last", went)
	}
	f.wantServed()
	f.wantTruth()
}

// Those go last whose rollout is an outage.
func TestWhatCannotRollGentlyGoesLast(t *testing.T) {
	t.Parallel()
	specs := []string{"replicas: 1", "replicas: 2, strategy: {type: Recreate}", kinds["Deployment"], kinds["Deployment"]}
	f := newFleet(t, len(specs), func(i int) member { return member{manner: "strict", probe: true, spec: specs[i]} })
	f.edit("good")
	f.wantRolledOut()
	if went := f.went(); went[3] == "deployment/app-02" || went[3] == "deployment/app-03" || went[0] == "deployment/app-00" || went[0] == "deployment/app-01" {
		t.Errorf("they went in the order %v, want app-02 and app-03 before the others", went)
	}
	f.wantServed("deployment/app-00", "deployment/app-01")
	f.wantTruth()
}

// One that never ran is no reason to halt, and does not keep others waiting. Without
// a probe its Pods are ready for a moment each time they start.
func TestWhatWasUnhealthyBeforeTriesAndHaltsNothing(t *testing.T) {
	t.Parallel()
	for name, probe := range map[string]bool{"WithAProbe": true, "Without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 4, func(i int) member {
				if i == 0 {
					return member{manner: ill, probe: probe}
				}
				return strict(i)
			})
			time.Sleep(65 * time.Second) // one that makes no progress for a minute is not healthy (docs/rollouts.md)
			f.edit("good")
			f.wantAllRoll()
			f.wantServing()
			f.wantSaid(source, "ChangeIncomplete", "")
			if went := f.went(); went[0] == "deployment/app-00" { // it waits for a first proof, and until no other one waits
				t.Errorf("they went in the order %v, want app-00 not to try it", went)
			}
			f.wantUnsaid(source, "ChangeHalted")
			f.wantServed()
			f.wantTruth()
		})
	}
}

// went are the workloads in the order in which they rolled since the last edit.
func (f *fleet) went() []string {
	f.t.Helper()
	harness.Must(f.t, court.Witness.CatchUp(f.t.Context(), f.Namespace))
	var names []string
	for _, roll := range f.seen().Rolls(f.since, soak) {
		if name := f.name(roll.Workload); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
