// Package waiting holds which workloads have something due and wait: for what, and since when.
// Metrics read it.
//
// It must not know why they wait, nor how people are told: the rules stand in packages
// checksum and internal/rollout. It has no client, no goroutine and no clock.
//
// Start reading here, then told.go (which events were emitted) and older.go (which workloads keep older
// content, and since when).
package waiting

import (
	"sync"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// Waits are the workloads that wait. Its methods may be called at any time, from any
// goroutine.
type Waits struct {
	mu  sync.Mutex
	all map[workload.Ref]wait
	// Told is what people were told.
	Told Told
	// Older are those that have older content meanwhile, or wait for nothing.
	Older Older
}

// New knows of none.
func New() *Waits {
	return &Waits{all: map[workload.Ref]wait{}, Told: Told{texts: map[Subject]map[string]words{}}, Older: Older{all: map[workload.Ref]older{}}}
}

// wait is about one workload.
type wait struct {
	why     reason.Reason
	since   time.Time
	failing time.Time // since when its looks fail, zero when they do not
}

// now is what it waits for, and since when: one whose looks fail waits for its next try
// alone.
func (w *wait) now() (why reason.Reason, since time.Time) {
	if w.failing.IsZero() {
		return w.why, w.since
	}
	return reason.Retry, w.failing
}

// Looked notes what a look has found to hold a workload; NoReason: nothing. It has failed, or it had not,
// and the workload waits to be tried again all the same.
func (w *Waits) Looked(ref workload.Ref, why reason.Reason, failed, again bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.all[ref]
	switch {
	case failed && is.failing.IsZero():
		is.failing = now
	case failed:
	case again && why == reason.Turn && (is.why.Label() == reason.Blocked.Label() || is.why == reason.TooLarge):
		// Only the next try can tell whether that has ended.
	case is.why.Label() != why.Label():
		is.why, is.since = why, now
	default:
		is.why = why
	}
	if !failed && (!again || why == reason.Halted) { // nothing is tried while the change is halted
		is.failing = time.Time{}
	}
	if w.all[ref] = is; is.why == reason.NoReason && is.failing.IsZero() {
		delete(w.all, ref)
	}
}

// Queued is how many workloads wait, and since when the first of them does.
type Queued struct {
	Count int
	Since time.Time
}

// Tally counts the workloads that wait, by the label of what they wait for.
func (w *Waits) Tally() map[string]Queued {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]Queued{}
	for _, one := range w.all {
		why, since := one.now()
		q := found[why.Label()]
		if q.Count == 0 || since.Before(q.Since) {
			q.Since = since
		}
		found[why.Label()] = Queued{q.Count + 1, q.Since}
	}
	return found
}
