package rollout

import (
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Orders are what has come of looking at everything.
type Orders struct {
	// Roll are the workloads whose turn has come. Look are others to be looked at: they wait for
	// a change that has just been halted, have lost their turn, or something is to be read.
	Roll, Look []workload.Ref
	// Halted, Resumed and Finished are for people.
	Halted, Resumed, Finished []News
	// Changed are the sources whose numbers of workloads by state have changed since the last cycle.
	Changed []SourceRef
	// Ended is what became of rollouts.
	Ended []Ended
	// Returns are what became of workloads that have failed, and are set to return to their former content.
	Returns []Return
	// At is when to ask again; zero: when something happens.
	At time.Time
}

// News is what has become of a change.
type News struct {
	Source  SourceRef
	By      workload.Ref // the workload that has failed with it, or declined it
	Foreign bool         // it is in another namespace, and By is not told
	Why     Failure      // of By
	Settled int          // how many have rolled for it, but for those of Broken
	Broken  int          // how many had nothing available before, and have failed with it
}

// again has the planner asked again at a moment, and reports whether that is still to come.
func (o *Orders) again(at, now time.Time) bool {
	if !at.After(now) {
		return false
	}
	if o.At.IsZero() || at.Before(o.At) {
		o.At = at
	}
	return true
}

// Counts are the numbers of changes by state, of rollouts under way, and of workloads
// that a halt holds.
type Counts struct{ Rolling, Waiting, Halted, Unsettled, Held int }
