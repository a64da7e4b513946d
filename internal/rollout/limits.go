package rollout

import (
	"math/bits"
	"time"
)

// Limits bound how much rolls at once.
type Limits struct {
	// Step is how many workloads a change rolls first; 0: all at once, and nothing
	// of what follows counts, but for Settle.
	Step int
	// Unsettled is how many rollouts may be under way at once in the cluster.
	Unsettled Budget
	// UnsettledPerNamespace is the same in each namespace; 0: nine tenths of it.
	UnsettledPerNamespace int
	// ReplicatedEach makes each copy of a replicated ConfigMap a change of its own.
	ReplicatedEach bool
	// Settle is how long a source must have rested before a roll; several edits within
	// ten times that make one.
	Settle time.Duration
	// Soak is how long a rollout has to stay well before it is healthy.
	Soak time.Duration
	// FirstSoak is the same while nobody has proven the content, where that concerns three
	// workloads or more: twice as long from ten on, ten times from a hundred; 0: none.
	FirstSoak time.Duration
	// CrashDeadline is how long every new pod has to crash, or to be unable to
	// start, before a rollout has failed.
	CrashDeadline time.Duration
	// RolloutDeadline is how long a rollout may make no progress, and how long a
	// workload that is busy with another rollout is waited for.
	RolloutDeadline time.Duration
}

// Times that no setting changes.
const (
	// openWithin bounds how long a change waits for workloads that cannot be looked at.
	openWithin = time.Minute
	// replicatedWithin is how far apart the first copies of a replicated ConfigMap may
	// be written.
	replicatedWithin = time.Minute
	// foreignHalt is for how long a change of a replicated ConfigMap stops in the namespaces
	// in which nothing has failed.
	foreignHalt = time.Hour
	// lookWithin is how long a workload whose turn has come may take to be looked at,
	// and a rollout that holds a slot longer than it may to be judged.
	lookWithin = time.Minute
	// unhealthyAfter is how long a workload may roll for another reason, without any
	// progress, before it counts as not healthy.
	unhealthyAfter = time.Minute
	// CalmAfter is how long a workload that has fallen back has to be rolled out before
	// it is believed: one that crashes again and again is so for moments.
	CalmAfter = 10 * time.Second
	// servedWithin is how many times RolloutDeadline a namespace may wait for a turn, before
	// those who have waited longest go first, whatever they have under way.
	servedWithin = 2
)

// How soon a workload that was refused is tried again, and after how long at the latest.
const (
	FirstRetry = 200 * time.Millisecond
	LastRetry  = time.Minute
)

// room reports whether the steps of a content have room for one more workload, beside some that are
// under way; proven are those that have proven it.
func (l *Limits) room(under, proven int) bool { return under < l.allowed(proven)-proven }

// allowed is how many workloads may have begun when some are proven: the first
// step, and twice as many more with each step that is complete.
func (l *Limits) allowed(proven int) int {
	complete := bits.Len(uint(proven/l.Step+1)) - 1 // #nosec G115 -- neither is negative
	return l.Step * (1<<(complete+1) - 1)
}

// soak is how long a rollout has to stay well, where no first soak counts and no setting
// says otherwise.
func (l *Limits) soak(f *Facts) time.Duration { return max(l.Soak, f.Status.MinReady) }

// firstSoak is how long a rollout has to stay well while nobody has proven a content that
// concerns some workloads: the more these are, the more a bad content costs.
func (l *Limits) firstSoak(concerned int) time.Duration {
	switch {
	case concerned >= 100:
		return 10 * l.FirstSoak
	case concerned >= 10:
		return 2 * l.FirstSoak
	case concerned >= 3:
		return l.FirstSoak
	}
	return 0
}
