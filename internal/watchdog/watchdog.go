// Package watchdog tells whether work goes on, for a process to be restarted when
// that would help, and only then.
package watchdog

import (
	"sync"
	"time"
)

// Work knows what is under way. Its zero value knows of nothing.
type Work struct {
	mu     sync.Mutex
	since  map[uint64]time.Time
	last   uint64
	latest time.Time
}

// Begin notes that a piece of work begins; end, that it is done.
func (w *Work) Begin(now time.Time) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since == nil {
		w.since = map[uint64]time.Time{}
	}
	w.last++
	w.latest = now
	piece := w.last
	w.since[piece] = now
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.since, piece)
	}
}

// Oldest is when the piece began that has been under way longest, zero when there
// is none.
func (w *Work) Oldest() (oldest time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, since := range w.since {
		if oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// Latest is when a piece last began, zero when none ever did.
func (w *Work) Latest() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest
}
