// Package waiting knows which workloads have something due and wait: for what, since when,
// and because of which source or Namespace. Metrics ask it, and whoever reminds people.
//
// It must not know why they wait, nor how people are told: the rules stand in packages
// checksum and internal/rollout. It has no client, no goroutine and no clock.
//
// Start reading here, then told.go (what people were told), standing.go (of what they are to be
// reminded) and older.go (who keeps older content, and for how long).
package waiting

import (
	"sync"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Waits are the workloads that wait. Its methods may be called at any time, from any
// goroutine.
type Waits struct {
	mu       sync.Mutex
	all      map[workload.Ref]wait
	reminded map[cause]time.Time // when people were last told
	// Told is what people were told.
	Told Told
	// Older are those that have older content meanwhile, or wait for nothing.
	Older Older
}

// New knows of none.
func New() *Waits {
	return &Waits{all: map[workload.Ref]wait{}, reminded: map[cause]time.Time{}, Told: Told{texts: map[Subject]map[string]words{}}, Older: Older{all: map[workload.Ref]older{}}}
}

// wait is about one workload.
type wait struct {
	why     reason.Reason
	since   time.Time
	failing time.Time // since when its looks fail, zero when they do not
	about   []rollout.SourceRef
}

// now is what it waits for, and since when: one whose looks fail waits for its next try
// alone.
func (w *wait) now() (why reason.Reason, since time.Time) {
	if w.failing.IsZero() {
		return w.why, w.since
	}
	return reason.Retry, w.failing
}

// Found is what a look has found to hold a workload.
type Found struct {
	Why reason.Reason // NoReason: nothing
	// About are the sources because of which it waits; one of the zero Source is a Namespace.
	About []rollout.SourceRef
}

// Looked notes what a look has found. It has failed, or it had not, and the workload waits to
// be tried again all the same.
func (w *Waits) Looked(ref workload.Ref, found Found, failed, again bool, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.all[ref]
	if found.Why != reason.NoReason || len(found.About) > 0 { // else a failed look has found nothing
		is.about = found.About
	}
	switch {
	case failed && is.failing.IsZero():
		is.failing = now
	case failed:
	case again && found.Why == reason.Turn && (is.why.Label() == reason.Blocked.Label() || is.why == reason.TooLarge):
		// Only the next try can tell whether that has ended.
	case is.why.Label() != found.Why.Label():
		is.why, is.since = found.Why, now
	default:
		is.why = found.Why
	}
	if !failed && (!again || found.Why == reason.Halted) { // nothing is tried while the change is halted
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
