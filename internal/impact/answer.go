package impact

import (
	"cmp"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Answer is what comes of the edits, as far as anybody can know it before.
type Answer struct {
	// Rolls are those that nothing but their turn holds, then those that a setting holds until
	// a time, the soonest first; each sorted.
	Rolls []Roll
	// First is how many of those that nothing holds begin at once, of those whose pods are
	// replaced.
	First int
	// Stays are the others, sorted, once for each edited source that they use.
	Stays []Stay
}

// Roll is a workload that rolls.
type Roll struct {
	Workload workload.Ref
	// For are the edited sources for which it rolls, sorted.
	For []checksum.Source
	// Held is the setting that holds it, and until when; of NoReason: none does.
	Held checksum.Hold
	// Waits says why no pod starts by it, such as "it has no replicas"; "": pods do.
	Waits string
	// Recreates is workload.Status.Recreates.
	Recreates bool
}

// Stay is a workload that uses an edited source, and does not roll for it.
type Stay struct {
	Workload workload.Ref
	Source   checksum.Source
	Why      checksum.Reason
	// Finding is what is missing, or cannot be read; its Reason is NoReason for all else.
	Finding checksum.Finding
	// Would tells that it would roll, were it not for Why: it does so when that ends.
	Would bool
	// Before tells that its containers could not start without what the source lacked
	// before the edit either.
	Before bool
	// Pinned tells that its template pins the source: pods that start read what is pinned.
	Pinned bool
}

// Answer foresees what comes of the edits. It costs about 10 µs for each workload that uses them.
func (q *Question) Answer() Answer {
	concerned, stays := q.concerned()
	declined := slices.DeleteFunc(slices.Clone(stays), func(s Stay) bool { return s.Why != checksum.DeclinedKept })
	answer, now := Answer{Stays: stays}, 0
	for _, a := range concerned {
		hold := q.hold(a, declined)
		if hold.Reason != checksum.NoReason && hold.Until.IsZero() {
			for _, source := range a.rollsFor {
				answer.Stays = append(answer.Stays, Stay{Workload: a.Ref, Source: source, Why: hold.Reason, Finding: a.finding(hold.Reason), Would: true})
			}
			continue
		}
		answer.Rolls = append(answer.Rolls, Roll{Workload: a.Ref, For: a.rollsFor, Held: hold, Waits: a.Status.Waits, Recreates: a.Status.Recreates})
		if hold.Reason == checksum.NoReason && a.Status.Waits == "" {
			now++
		}
	}
	answer.First = q.first(now)
	slices.SortStableFunc(answer.Stays, Stay.compare)
	slices.SortFunc(answer.Rolls, func(a, b Roll) int {
		return cmp.Or(a.Held.Until.Compare(b.Held.Until), a.Workload.Compare(b.Workload))
	})
	return answer
}

// hold is what keeps a workload from rolling, beside its turn. One without an end ends when
// somebody changes something.
func (q *Question) hold(a *app, declined []Stay) checksum.Hold {
	f := &rollout.Facts{Review: a.review, Policy: a.Policy, Status: a.Status}
	if why := f.Barred(); why != checksum.NoReason {
		return checksum.Hold{Reason: why}
	}
	if hold := f.Held(time.Time{}, q.Now); hold.Reason != checksum.NoReason {
		return hold
	}
	if slices.ContainsFunc(declined, a.haltedBy) {
		return checksum.Hold{Reason: checksum.Halted}
	}
	return checksum.Hold{}
}

// first is how many of some workloads begin at once.
func (q *Question) first(of int) int {
	if q.Limits.Step == 0 {
		return of
	}
	slots := q.Limits.Unsettled.Slots(q.CanRoll)
	return min(of, q.Limits.Step, slots, rollout.PerNamespace(slots, q.Limits.UnsettledPerNamespace))
}

func (s Stay) compare(other Stay) int {
	return cmp.Or(s.Workload.Compare(other.Workload), s.Source.Compare(other.Source))
}
