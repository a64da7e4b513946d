package rollout

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Limits bound how much rolls at once.
type Limits struct {
	// Step is how many workloads a change rolls first; 0: all at once, and nothing
	// of what follows counts.
	Step int
	// Budget is how many rollouts may be under way at once in the cluster.
	Budget Budget
	// Unsettled is how many rollouts may be under way at once, in the cluster and in
	// each namespace.
	Unsettled, UnsettledPerNamespace int
	// ForeignHalt is for how long a change of a replicated ConfigMap stops in the
	// namespaces in which nothing has failed.
	ForeignHalt time.Duration
	// ReplicatedEach makes each copy of a replicated ConfigMap a change of its own.
	ReplicatedEach bool
	// Soak is how long a rollout has to stay well before it is healthy.
	Soak time.Duration
	// CrashDeadline is how long every new pod has to crash, or to be unable to
	// start, before a rollout has failed.
	CrashDeadline time.Duration
	// Settle is how long a source must have rested before a roll; several edits within
	// ten times that make one.
	Settle time.Duration
	// RolloutDeadline is how long a rollout may make no progress, where its own
	// controller has no deadline.
	RolloutDeadline time.Duration
}

// change is one source going from one content to another, or several that settled
// together and concern common workloads.
type change struct {
	number   uint64 // of all that have begun
	born     time.Time
	contents map[SourceRef]*checksum.Content // of its sources; none: they have changed again
	into     *change                         // which has taken it in, nil: none
	// found tells that it began before we looked, so that workloads may have rolled
	// for it already.
	found bool
	// unseen is how many workloads have to be looked at before it begins, so that
	// the first is the right one.
	unseen int
	// proven is how many became healthy with each source, settled how many rolled.
	proven  map[SourceRef]int
	settled int
	halted  workload.Ref // by whom; the zero ref: by nobody
}

// ended is a change that has ended well.
type ended struct {
	content *checksum.Content
	proven  int
}

func (c *change) root() *change {
	for c.into != nil {
		c = c.into
	}
	return c
}

// begun reports whether anything has rolled for it.
func (c *change) begun() bool { return c.settled > 0 }

func (c *change) places() []SourceRef {
	return slices.SortedFunc(maps.Keys(c.contents), SourceRef.Compare)
}

// candidate is a workload that would roll, but for its turn.
type waiter struct {
	user    workload.Ref
	sources []checksum.Source
	records checksum.Records
	since   time.Time
	// due is when its sources have settled.
	due time.Time
	// last tells that it is not healthy: it goes last, and halts nothing.
	last bool
	// busy tells that it rolls for another reason, or did a moment ago: it is waited
	// for. unready is the former alone: should it roll all the same, it halts nothing.
	busy, unready bool
	// mute tells that it cannot report health: it is settled at once. silent tells that
	// it may change its status, which says nothing of health: it rolls alone.
	mute, silent bool
	// order is its place, careful that others are to go before it.
	order   int
	careful bool
	tries   int
	retry   time.Time // not before

	granted bool
	// on are its changes, and age when the oldest was born: as of the last survey.
	on  []*change
	age time.Time
}

// unordered is the order of those that have none: they go after the others.
const unordered = math.MaxInt

// rollout is a workload that rolls, or has failed.
type attempt struct {
	began time.Time
	// evidence is for which changes it counts, and whether it can halt them.
	evidence map[*change]bool
	// holds are the changes for which the workload has failed before: they stay
	// halted until it is healthy with what they brought.
	holds map[*change]hold
	// records is what was on record before, and rolled for which sources that is
	// another now.
	records checksum.Records
	rolled  []checksum.Source
	uid     string      // of the workload
	gone    time.Time   // since when there is no workload of its name; zero: there is
	last    bool        // it was not healthy before
	places  []SourceRef // of the sources for which it rolls
	found   bool        // it was not begun by us
	before  *attempt    // the one in whose place it stands, nil: none
	tries   int
	retry   time.Time // when to try again, should it not have come
	failed  bool
	why     string
	health  health
}

// hold is a failure of before: when that rollout began, and the sources for which
// it rolled.
type hold struct {
	began  time.Time
	places []SourceRef
}

// carriedBy reports whether a workload that carries the present content of some
// sources carries what a change brought, as far as it is among some places.
func (c *change) carriedBy(carried map[checksum.Source]*checksum.Content, places []SourceRef) bool {
	for _, at := range places {
		if content, its := c.contents[at]; its && !carries(carried, at.Source, content) {
			return false
		}
	}
	return true
}

// proves reports whether a rollout can halt what it counts for.
func (r *attempt) proves() bool { return !r.last }
