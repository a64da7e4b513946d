package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// sharing answers requests for one thing that come together by one read. A read
// proves what there is for all requests from before it began; a request that comes while
// one is under way waits for the next. So a source that a thousand workloads use is read a few
// times, not a thousand, when they all roll. It bounds how many reads are under way.
type sharing[T any] struct {
	timeout time.Duration // of one read, and of the wait for its slot
	slots   chan struct{}

	mu    sync.Mutex
	lines map[place]*line[T]
}

func newSharing[T any](timeout time.Duration, parallel int) *sharing[T] {
	return &sharing[T]{timeout: timeout, slots: make(chan struct{}, parallel), lines: map[place]*line[T]{}}
}

// place is a source in its namespace, or, without a name, all sources of a kind in it.
type place struct {
	namespace string
	source    checksum.Source
}

// line is where a read is under way, or waits for its slot; next, if any, has not begun.
type line[T any] struct{ next *read[T] }

type read[T any] struct {
	done    chan struct{}
	waiters int // those that have not given up
	found   T
	err     error
}

func newRead[T any]() *read[T] { return &read[T]{done: make(chan struct{})} }

// do returns what look finds at a place, by a call that began after this one.
func (s *sharing[T]) do(ctx context.Context, at place, look func(context.Context) (T, error)) (T, error) {
	mine := s.join(ctx, at, look)
	select {
	case <-mine.done:
		return mine.found, mine.err
	case <-ctx.Done():
		s.leave(mine)
		var none T
		return none, fmt.Errorf("waiting for the read of %s: %w", at.source, ctx.Err())
	}
}

func (s *sharing[T]) leave(mine *read[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine.waiters--
}

func (s *sharing[T]) join(ctx context.Context, at place, look func(context.Context) (T, error)) *read[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, known := s.lines[at]
	if !known {
		l = &line[T]{}
		s.lines[at] = l
	}
	if l.next == nil {
		l.next = newRead[T]()
	}
	l.next.waiters++
	if !known { // the read serves others too: it does not end with the request that began it
		go s.serve(context.WithoutCancel(ctx), at, l, look)
	}
	return l.next
}

// serve reads until there are no waiters.
func (s *sharing[T]) serve(ctx context.Context, at place, l *line[T], look func(context.Context) (T, error)) {
	for waiting := true; waiting; waiting = s.waits(at, l) {
		err := s.enter(ctx)
		current, wanted := s.begin(l)
		if current.err = err; err == nil {
			if wanted { // else all have given up
				current.found, current.err = s.once(ctx, at, look)
			}
			<-s.slots
		}
		close(current.done)
	}
}

// enter waits for a slot, in bounded time.
func (s *sharing[T]) enter(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for one of %d parallel requests: %w", cap(s.slots), ctx.Err())
	}
}

// begin begins the read for all requests until now, if one of them still waits.
func (s *sharing[T]) begin(l *line[T]) (current *read[T], wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current = l.next
	l.next = nil
	return current, current.waiters > 0
}

// waits reports whether there is a request since the last read began.
func (s *sharing[T]) waits(at place, l *line[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.next == nil {
		delete(s.lines, at)
		return false
	}
	return true
}

// once reads in bounded time. A panic is an error for the waiters, not the end
// of the process: nothing above this goroutine could recover it.
func (s *sharing[T]) once(ctx context.Context, at place, look func(context.Context) (T, error)) (found T, err error) {
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			var none T
			found, err = none, fmt.Errorf("reading %s: internal error: a panic of type %T", at.source, panicked)
		}
	}()
	return look(timed)
}
