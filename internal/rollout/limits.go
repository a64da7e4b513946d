package rollout

import "time"

// Limits bound how much rolls at once.
type Limits struct {
	// Step is how many workloads a change rolls first; 0: all at once, and nothing
	// of what follows counts, but for Settle.
	Step int
	// Unsettled is how many rollouts may be under way at once in the cluster.
	Unsettled Budget
	// UnsettledPerNamespace is the same in each namespace; 0: nine tenths of it.
	UnsettledPerNamespace int
	// ForeignHalt is for how long a change of a replicated ConfigMap stops in the
	// namespaces in which nothing has failed.
	ForeignHalt time.Duration
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
	// lookWithin is how long a workload whose turn has come may take to be looked at,
	// and a rollout that holds a slot longer than it may to be judged.
	lookWithin = time.Minute
	// postponedFor is how long a watch may be behind what a re-admission has shown.
	postponedFor = 5 * time.Second
	// unhealthyAfter is how long a workload may roll for another reason, without any
	// progress, before it counts as not healthy.
	unhealthyAfter = time.Minute
	// CalmAfter is how long a workload that has fallen back has to be rolled out before
	// it is believed: one that crashes again and again is so for moments.
	CalmAfter = 10 * time.Second
	// servedWithin is how many times RolloutDeadline a namespace may wait for a turn, before
	// those who have waited longest go first, whatever they have under way.
	servedWithin = 2
	// recountEvery is how often all tallies are made anew, should one be wrong.
	recountEvery = 5 * time.Minute
)

// A workload that was refused is tried again after a while, twice as long each time.
const (
	FirstRetry = 200 * time.Millisecond
	LastRetry  = time.Minute
)

// retryAfter is how long to wait after so many tries.
func retryAfter(tries int) time.Duration { return min(FirstRetry<<min(tries, 20), LastRetry) }
