package controller

import (
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// waits knows, for the metrics alone, which workloads have something due and
// wait, for what, and since when. What a look at a workload does not note does not
// hold it any more.
type waits struct {
	now func() time.Time

	mu  sync.Mutex
	all map[workload.Ref]waiting
}

// waiting is about one workload.
type waiting struct {
	noted   checksum.Reason // what holds it, by the look under way
	why     checksum.Reason // what it waits for since
	since   time.Time
	failing time.Time // since when its looks fail, zero when they do not
}

func newWaits(now func() time.Time) *waits {
	return &waits{now: now, all: map[workload.Ref]waiting{}}
}

// hold notes, during a look, what holds a workload.
func (w *waits) hold(user workload.Ref, why checksum.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.all[user]
	known.noted = why
	w.all[user] = known
}

// looked ends a look: it has failed, or it had not, and the workload waits to be
// tried again all the same.
func (w *waits) looked(user workload.Ref, failed, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.all[user]
	why := is.noted
	is.noted = checksum.NoReason
	switch {
	case failed && is.failing.IsZero():
		is.failing = w.now()
	case failed:
	case again && why == checksum.Turn && (is.why == checksum.Blocked || is.why == checksum.TooLarge):
		// Nobody knows before the next try whether that has ended.
	case is.why.Label() != why.Label():
		is.why, is.since = why, w.now()
	}
	if !failed && (!again || why == checksum.Halted) { // nobody tries while the change is halted
		is.failing = time.Time{}
	}
	if w.all[user] = is; is.why == checksum.NoReason && is.failing.IsZero() {
		delete(w.all, user)
	}
}

// queued is how many workloads wait, and since when the first of them does.
type queued struct {
	count int
	since time.Time
}

// byLabel counts those that wait, by the label of what they wait for; who is tried
// again waits for nothing else.
func (w *waits) byLabel() map[string]queued {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[string]queued{}
	for _, waiting := range w.all {
		why, since := waiting.why, waiting.since
		if !waiting.failing.IsZero() {
			why, since = checksum.Retry, waiting.failing
		}
		if why == checksum.NoReason {
			continue // a look at it is under way
		}
		q := found[why.Label()]
		if q.count++; q.count == 1 || since.Before(q.since) {
			q.since = since
		}
		found[why.Label()] = q
	}
	return found
}
