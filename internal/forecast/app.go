package forecast

import (
	"math"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// app is a workload at the virtual time.
type app struct {
	*Workload
	selections []checksum.Selection
	review     checksum.Review
	records    checksum.Records
	rollsFor   []checksum.Source
	// first is what held it, beside its turn, when it was first looked at, last when it was
	// last.
	looked      bool
	first, last checksum.Hold

	steps          *steps
	step           int
	began, healthy time.Time // zero: not yet
}

// haltedBy reports whether a workload rolls for what an undo of another one has declined.
func (a *app) haltedBy(s Stay) bool {
	return s.Workload.Namespace == a.Ref.Namespace && slices.Contains(a.rollsFor, s.Source)
}

// forGood reports whether a hold ends only when somebody changes something.
func forGood(h checksum.Hold) bool { return h.Reason != checksum.NoReason && h.Until.IsZero() }

// status is how far it is at a moment, and when that changes next by itself; zero: never.
// What rolls for another reason began at from, as nobody knows better.
func (a *app) status(from, now time.Time) (workload.Status, rollout.Standstill, time.Time) {
	status, rolls, began := a.Status, !a.began.IsZero(), a.began
	silent := status.Phase == workload.Unreported && status.StatusHash != 0 // it tells nothing of rollouts
	switch {
	case !rolls && status.Phase != workload.Rolling, status.Phase == workload.Unreported && !silent:
		return status, a.Standstill, time.Time{}
	case !rolls:
		began = from
	}
	ends := began.Add(a.estimate())
	switch {
	case now.Before(ends) && (silent || status.StatusHash != 0 && now.Equal(began)):
		return status, a.Standstill, ends // its controller has told nothing new
	case silent:
		status.StatusHash++
		return status, a.Standstill, time.Time{}
	case now.Before(ends):
		return a.underWay(now.Sub(began)), rollout.Standstill{Since: now}, ends // it always makes progress
	}
	status.Phase, status.Updated, status.Available, status.Missing, status.Current = workload.RolledOut, status.Wanted, status.Wanted, 0, ends
	if status.StatusHash != 0 {
		status.StatusHash += 2
	}
	return status, rollout.Standstill{Calm: ends}, time.Time{}
}

// underWay is its status some time after a rollout has begun: what is updated grows.
func (a *app) underWay(since time.Duration) workload.Status {
	status := a.Status
	status.Phase, status.Available, status.Missing = workload.Rolling, 0, 1
	status.Updated = int32(min(since/time.Second+1, math.MaxInt32/2)) //nolint:gosec // it is not negative, and fits
	if status.StatusHash != 0 {
		status.StatusHash++
	}
	return status
}

// finding is what is missing or cannot be read, if that is why it is held.
func (a *app) finding() checksum.Finding {
	switch a.last.Reason {
	case checksum.MissingSource, checksum.MissingKey:
		return a.review.Missing[0]
	case checksum.UnreadableSetting:
		if len(a.Policy.Faults) > 0 {
			return a.Policy.Faults[0].Finding()
		}
		return a.review.Faults[0]
	default:
		return checksum.Finding{}
	}
}
