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

	mu      sync.Mutex
	noted   map[workload.Ref]checksum.Reason // by looks under way
	holds   map[workload.Ref]waiting
	retries map[workload.Ref]time.Time // since when they fail
}

type waiting struct {
	why   checksum.Reason
	since time.Time
}

func newWaits(now func() time.Time) *waits {
	return &waits{now: now, noted: map[workload.Ref]checksum.Reason{}, holds: map[workload.Ref]waiting{}, retries: map[workload.Ref]time.Time{}}
}

// hold notes, during a look, what holds a workload.
func (w *waits) hold(user workload.Ref, why checksum.Reason) {
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
	case !again, why == checksum.Halted: // nobody tries while the change is halted
		delete(w.retries, user)
	}
	switch {
	case !held:
		delete(w.holds, user)
	case again && why == checksum.Turn && (was == checksum.Blocked || was == checksum.TooLarge):
		// Nobody knows before the next try whether that has ended.
	case was.Label() != why.Label():
		w.holds[user] = waiting{why, w.now()}
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
	add := func(why checksum.Reason, since time.Time) {
		q := found[why.Label()]
		if q.count++; q.count == 1 || since.Before(q.since) {
			q.since = since
		}
		found[why.Label()] = q
	}
	for user, hold := range w.holds {
		if _, failing := w.retries[user]; !failing {
			add(hold.why, hold.since)
		}
	}
	for _, since := range w.retries {
		add(checksum.Retry, since)
	}
	return found
}
