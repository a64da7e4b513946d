package controller

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
)

// longestSettle bounds the settling of a source that is edited all the time,
// as a multiple of the window, from the first edit.
const longestSettle = 10

// settling knows when a source has rested for long enough, so that several
// edits make one rollout and kubelets have seen the new content.
type settling struct {
	window time.Duration
	clock  clock.PassiveClock

	mu sync.Mutex
	// began is when this process began to lead: what changed before, while
	// nobody watched, counts as changed then.
	began time.Time
	edits map[place]edit
}

// place is a source in its namespace.
type place struct {
	namespace string
	source    checksum.Source
}

// compare orders sources: by namespace, kind and name.
func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.namespace, other.namespace), p.source.Compare(other.source))
}

type edit struct{ first, last time.Time }

func newSettling(window time.Duration, clock clock.PassiveClock) *settling {
	return &settling{window: window, clock: clock, edits: map[place]edit{}}
}

func (s *settling) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = s.clock.Now()
}

// changed notes an edit.
func (s *settling) changed(namespace string, source checksum.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	at := place{namespace, source}
	e, ok := s.edits[at]
	if !ok || !now.Before(s.due(e)) {
		e.first = now
		s.sweep(now)
	}
	e.last = now
	s.edits[at] = e
}

// wait is how long to wait yet for a source to settle; zero: it has.
func (s *settling) wait(namespace string, source checksum.Source) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.edits[place{namespace, source}]
	if !ok {
		e = edit{first: s.began, last: s.began}
	}
	return max(0, s.due(e).Sub(s.clock.Now()))
}

func (s *settling) due(e edit) time.Time {
	due, latest := e.last.Add(s.window), e.first.Add(longestSettle*s.window)
	if latest.Before(due) {
		return latest
	}
	return due
}

// sweep forgets what has settled, now and then, so that memory follows what
// changes at a time and not what ever changed.
func (s *settling) sweep(now time.Time) {
	const enough = 1024
	if len(s.edits) < enough {
		return
	}
	for at, e := range s.edits {
		if !now.Before(s.due(e)) {
			delete(s.edits, at)
		}
	}
}
