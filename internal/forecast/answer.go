package forecast

import (
	"cmp"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Answer is what comes of the edits.
type Answer struct {
	// Rolls are in the order in which they roll.
	Rolls []Roll
	// Stays are the others, sorted, once for each edited source that they use.
	Stays []Stay
	// Ends is about when the last of Rolls is healthy; zero when none rolls.
	Ends time.Time
}

// Roll is a workload that rolls. Its times are estimates.
type Roll struct {
	Workload workload.Ref
	// For are the edited sources for which it rolls, sorted.
	For []checksum.Source
	// Change and Step count from 1: sources whose users roll in common steps are one
	// change, and a step begins when all of the one before it is healthy.
	Change, Step int
	At, Healthy  time.Time
	// Held is the setting that holds it at first, until At or earlier; NoReason: none.
	Held checksum.Reason
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
}

// Brief is what an admission warning has room for.
type Brief struct {
	// Rolls are the workloads whose pods are replaced: first the one that goes first, then
	// the others, sorted; last those that a setting holds until a time, sorted.
	Rolls []workload.Ref
	// First is how many of Rolls begin at the same time as the first.
	First int
	// Held says, of the latter, which setting that is, and until when.
	Held map[workload.Ref]checksum.Hold
	// Later are those that are stamped, and no pod starts by it.
	Later []workload.Ref
	// Stays is as in an Answer.
	Stays []Stay
}

// Answer foresees what comes of the edits, until everything is healthy.
func (q *Question) Answer() Answer {
	concerned, stays := q.concerned()
	r := q.run(concerned, declined(stays))
	r.finish(func() bool { return false })
	answer := Answer{Stays: append(stays, r.stays(true)...)}
	slices.SortStableFunc(answer.Stays, Stay.compare)
	for _, a := range r.rolled {
		answer.Rolls = append(answer.Rolls, Roll{
			Workload: a.Ref, For: a.rollsFor, Change: a.steps.change, Step: a.step, At: a.began, Healthy: a.healthy, Held: a.first.Reason, Waits: a.Status.Waits, Recreates: a.Status.Recreates,
		})
		if a.healthy.After(answer.Ends) {
			answer.Ends = a.healthy
		}
	}
	return answer
}

// declined are the stays of content that an undo has sent back.
func declined(stays []Stay) []Stay {
	return slices.DeleteFunc(slices.Clone(stays), func(s Stay) bool { return s.Why != checksum.DeclinedKept })
}

// mostByTurns is how many workloads are given turns for a Brief: more would take longer
// than an admission has.
const mostByTurns = 100

// Brief foresees who rolls, and how many go first. It costs little: time passes until then
// alone. Of more than mostByTurns it tells how many go first, and not who.
func (q *Question) Brief() Brief {
	concerned, stays := q.concerned()
	r, first, together := &run{q: q, all: concerned, declined: declined(stays)}, workload.Ref{}, 0
	if len(concerned) <= mostByTurns {
		r = q.run(concerned, r.declined)
		first, together = r.first()
	} else {
		together = r.unturned()
	}
	brief := Brief{First: together, Stays: append(stays, r.stays(false)...), Held: map[workload.Ref]checksum.Hold{}}
	slices.SortStableFunc(brief.Stays, Stay.compare)
	for _, a := range r.all {
		switch {
		case forGood(a.first), a.last.Reason == checksum.Halted:
		case a.Status.Waits != "":
			brief.Later = append(brief.Later, a.Ref)
		default:
			if brief.Rolls = append(brief.Rolls, a.Ref); a.first.Reason != checksum.NoReason {
				brief.Held[a.Ref] = a.first
			}
		}
	}
	slices.SortFunc(brief.Later, workload.Ref.Compare)
	slices.SortFunc(brief.Rolls, func(a, b workload.Ref) int {
		return cmp.Or(cmp.Compare(brief.place(a, first), brief.place(b, first)), a.Compare(b))
	})
	return brief
}

// place is 0 of the first one, 2 of those that are held.
func (b *Brief) place(ref, first workload.Ref) int {
	_, held := b.Held[ref]
	switch {
	case ref == first:
		return 0
	case held:
		return 2
	}
	return 1
}

func (s Stay) compare(other Stay) int {
	return cmp.Or(s.Workload.Compare(other.Workload), s.Source.Compare(other.Source))
}
