package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// sharing answers requests for one source that come together by one read. A
// read proves what a source holds for everybody who asked before it began; who
// asks while one is under way waits for the next. So a source that a thousand
// workloads use is read a few times, not a thousand, when they all roll.
type sharing struct {
	timeout time.Duration // of one read

	mu    sync.Mutex
	lines map[place]*line
}

// place is a source in its namespace.
type place struct {
	namespace string
	source    checksum.Source
}

// line is where a read of one source is under way; next, if any, has not begun.
type line struct{ next *read }

type read struct {
	done   chan struct{}
	record Record
	err    error
}

// do returns what look says of a source, of a call that began after this one.
func (s *sharing) do(ctx context.Context, at place, look func(context.Context) (Record, error)) (Record, error) {
	mine := s.join(ctx, at, look)
	select {
	case <-mine.done:
		return mine.record, mine.err
	case <-ctx.Done():
		return Record{}, fmt.Errorf("waiting for the read of %s: %w", at.source, ctx.Err())
	}
}

func (s *sharing) join(ctx context.Context, at place, look func(context.Context) (Record, error)) *read {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, underWay := s.lines[at]; underWay {
		if l.next == nil {
			l.next = &read{done: make(chan struct{})}
		}
		return l.next
	}
	first := &read{done: make(chan struct{})}
	s.lines[at] = &line{}
	// The read serves others too: it does not end with the request that began it.
	go s.serve(context.WithoutCancel(ctx), at, first, look)
	return first
}

// serve reads until nobody waits.
func (s *sharing) serve(ctx context.Context, at place, current *read, look func(context.Context) (Record, error)) {
	for current != nil {
		current.record, current.err = s.once(ctx, at, look)
		close(current.done)
		current = s.following(at)
	}
}

// once reads in bounded time. A panic is an error of those who wait, not the end
// of the process: nobody above this goroutine could recover it.
func (s *sharing) once(ctx context.Context, at place, look func(context.Context) (Record, error)) (record Record, err error) {
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			record, err = Record{}, fmt.Errorf("reading %s: internal error: a panic of type %T", at.source, panicked)
		}
	}()
	return look(timed)
}

func (s *sharing) following(at place) *read {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[at]
	next := l.next
	l.next = nil
	if next == nil {
		delete(s.lines, at)
	}
	return next
}
