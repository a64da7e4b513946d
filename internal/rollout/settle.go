package rollout

import (
	"maps"
	"time"
)

// longestSettle bounds the settling of a source that is edited all the time, as a
// multiple of Limits.Settle, from the first edit.
const longestSettle = 10

// settling knows when a source has rested for long enough, so that several edits make
// one rollout and kubelets have seen the new content.
type settling struct {
	window time.Duration
	// began is when this process began to lead: what changed before that counts as
	// changed then.
	began time.Time
	edits map[SourceRef]edit
	many  int // edits, before some are forgotten
}

type edit struct{ first, last time.Time }

// edited notes an edit.
func (s *settling) edited(at SourceRef, now time.Time) {
	e, known := s.edits[at]
	if !known || !now.Before(s.due(e)) {
		e.first = now
		s.sweep(now)
	}
	e.last = now
	s.edits[at] = e
}

// wait is how long to wait yet for a source to settle; zero: it has.
func (s *settling) wait(at SourceRef, now time.Time) time.Duration {
	e, known := s.edits[at]
	if !known {
		e = edit{first: s.began, last: s.began}
	}
	return max(0, s.due(e).Sub(now))
}

func (s *settling) due(e edit) time.Time {
	return e.first.Add(min(e.last.Sub(e.first)+s.window, longestSettle*s.window))
}

// sweep forgets what has settled, now and then, so that memory follows what changes at
// a time and not what ever changed.
func (s *settling) sweep(now time.Time) {
	if len(s.edits) < s.many {
		return
	}
	maps.DeleteFunc(s.edits, func(_ SourceRef, e edit) bool { return !now.Before(s.due(e)) })
	s.many = max(many, 2*len(s.edits))
}

// many is from how many on things that are over are forgotten: when they have doubled.
const many = 1024
