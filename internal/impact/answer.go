package impact

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
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
	// Unguarded are those of the First that have neither a readiness probe nor minReadySeconds, in
	// the order of their turns: new pods that crash can replace all of their old ones.
	Unguarded []workload.Ref
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
	Why      reason.Reason
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
	declined := slices.DeleteFunc(slices.Clone(stays), func(s Stay) bool { return s.Why != reason.DeclinedKept })
	answer, now := Answer{Stays: stays}, []*app(nil)
	for _, a := range concerned {
		hold := q.hold(a, declined)
		if hold.Reason != reason.NoReason && hold.Until.IsZero() {
			for _, source := range a.rollsFor {
				answer.Stays = append(answer.Stays, Stay{Workload: a.Ref, Source: source, Why: hold.Reason, Finding: a.finding(hold.Reason), Would: true})
			}
			continue
		}
		answer.Rolls = append(answer.Rolls, Roll{Workload: a.Ref, For: a.rollsFor, Held: hold, Waits: a.Status.Waits, Recreates: a.Status.Recreates})
		if hold.Reason == reason.NoReason && a.Status.Waits == "" {
			now = append(now, a)
		}
	}
	answer.First = q.first(len(now))
	slices.SortStableFunc(now, (*app).compare)
	for _, a := range now[:answer.First] {
		if a.unguarded() {
			answer.Unguarded = append(answer.Unguarded, a.Ref)
		}
	}
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
	if why := f.Barred(); why != reason.NoReason {
		return checksum.Hold{Reason: why}
	}
	if hold := f.Held(time.Time{}, q.Now); hold.Reason != reason.NoReason {
		return hold
	}
	if slices.ContainsFunc(declined, a.haltedBy) {
		return checksum.Hold{Reason: reason.Halted}
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

// compare orders workloads as package rollout gives turns to those of a change that has not failed:
// by configstamp.dev/order, then those that serve while they roll, then the smaller ones.
func (a *app) compare(b *app) int {
	return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.risk(), b.risk()), cmp.Compare(a.Status.Wanted, b.Status.Wanted),
		cmp.Compare(a.Ref.Name, b.Ref.Name), cmp.Compare(a.Ref.Kind.Resource, b.Ref.Kind.Resource))
}

// place is the workload's configstamp.dev/order; those that have none go last.
func (a *app) place() int {
	if order := a.Policy.Order; order.Given {
		return order.Place
	}
	return math.MaxInt
}

// risk is higher for workloads that may serve nobody while they roll.
func (a *app) risk() int {
	switch {
	case a.Status.Phase == workload.Unreported:
		return 3
	case a.Status.Phase != workload.RolledOut:
		return 2
	case !a.Status.Gentle:
		return 1
	}
	return 0
}

// unguarded returns whether the workload's own controller replaces old pods by new ones as soon as
// they run.
func (a *app) unguarded() bool {
	return a.Unprobed && a.Status.MinReady == 0 && !a.Status.Recreates && a.Ref.Kind.Signs.Counts != workload.NoCounts
}

func (s Stay) compare(other Stay) int {
	return cmp.Or(s.Workload.Compare(other.Workload), s.Source.Compare(other.Source))
}
