package controller

import (
	"sync"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// waitReason is what a workload with changed sources waits for, as a metric label.
type waitReason string

// The reasons; those that settings give are named after them.
const (
	waitsForPause    waitReason = "pause"
	waitsForWindow   waitReason = "window"
	waitsForInterval waitReason = "min-interval"
	waitsForMode     waitReason = "observe"
	waitsForMissing  waitReason = "missing"    // a required source or key is not there
	waitsForReadable waitReason = "unreadable" // a setting cannot be read
	waitsForPace     waitReason = "pace"       // its sources are written again and again
	waitsForTurn     waitReason = "turn"       // others roll first
	waitsForHalt     waitReason = "halted"     // another has failed with the change
	waitsForOthers   waitReason = "blocked"    // another webhook would change the workload
	waitsForRoom     waitReason = "oversize"   // our annotations do not fit
	waitsForSettle   waitReason = "settle"     // its sources are being written: nobody is told
	waitsForRetry    waitReason = "retry"      // it was tried, and failed
)

// waitReasons lists them all.
func waitReasons() []waitReason {
	return []waitReason{
		waitsForPause, waitsForWindow, waitsForInterval, waitsForMode, waitsForMissing,
		waitsForReadable, waitsForPace, waitsForTurn, waitsForHalt, waitsForOthers, waitsForRoom, waitsForRetry,
	}
}

// waits knows, for the metrics alone, which workloads have something due and
// wait, for what, and since when. What a look at a workload does not note does not
// hold it any more.
type waits struct {
	now func() time.Time

	mu      sync.Mutex
	noted   map[workload.Ref]waitReason // by looks under way
	holds   map[workload.Ref]waiting
	retries map[workload.Ref]time.Time // since when they fail
}

type waiting struct {
	why   waitReason
	since time.Time
}

func newWaits(now func() time.Time) *waits {
	return &waits{now: now, noted: map[workload.Ref]waitReason{}, holds: map[workload.Ref]waiting{}, retries: map[workload.Ref]time.Time{}}
}

// hold notes, during a look, what holds a workload.
func (w *waits) hold(user workload.Ref, why waitReason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted[user] = why
}

// looked ends a look: it has failed, or it had not, and the workload waits to be
// tried again all the same.
func (w *waits) looked(user workload.Ref, failed, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	why, held := w.noted[user]
	was := w.holds[user].why
	delete(w.noted, user)
	switch {
	case failed:
		if _, failing := w.retries[user]; !failing {
			w.retries[user] = w.now()
		}
		return
	case !again, why == waitsForHalt: // nobody tries while the change is halted
		delete(w.retries, user)
	}
	switch {
	case !held:
		delete(w.holds, user)
	case again && why == waitsForTurn && (was == waitsForOthers || was == waitsForRoom):
		// Nobody knows before the next try whether that has ended.
	case was != why:
		w.holds[user] = waiting{why, w.now()}
	}
}

// queued is how many workloads wait for one reason, and since when the first
// of them does.
type queued struct {
	count int
	since time.Time
}

// byReason counts those that wait; who is tried again waits for nothing else.
func (w *waits) byReason() map[waitReason]queued {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[waitReason]queued{}
	add := func(why waitReason, since time.Time) {
		q := found[why]
		if q.count++; q.count == 1 || since.Before(q.since) {
			q.since = since
		}
		found[why] = q
	}
	for user, hold := range w.holds {
		if _, failing := w.retries[user]; !failing {
			add(hold.why, hold.since)
		}
	}
	for _, since := range w.retries {
		add(waitsForRetry, since)
	}
	return found
}
