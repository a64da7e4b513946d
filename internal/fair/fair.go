// Package fair is a queue in which the items of one namespace do not keep those of others waiting.
package fair

import (
	"sync"
	"time"
)

// Queue is a workqueue.Queue in which each namespace has a line of its own, and the lines
// take turns: a thousand items of one do not keep those of another waiting. It has a
// lock for metrics, which do not hold that of the workqueue.
type Queue[T any] struct {
	namespaceOf func(T) string
	now         func() time.Time

	mu    sync.Mutex
	lines map[string][]inLine[T]
	turns []string // the namespaces that have a line, the next one first
	total int
}

// inLine is an item that waits, and since when.
type inLine[T any] struct {
	item  T
	since time.Time
}

// New makes a Queue by a clock. namespaceOf returns the namespace of an item.
func New[T any](namespaceOf func(T) string, now func() time.Time) *Queue[T] {
	return &Queue[T]{namespaceOf: namespaceOf, now: now, lines: map[string][]inLine[T]{}}
}

// Touch implements workqueue.Queue: an item that waits already keeps its place.
func (*Queue[T]) Touch(T) {}

// Push implements workqueue.Queue.
func (q *Queue[T]) Push(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := q.namespaceOf(item)
	line, waiting := q.lines[namespace]
	if !waiting {
		q.turns = append(q.turns, namespace)
	}
	q.lines[namespace] = append(line, inLine[T]{item, q.now()})
	q.total++
}

// Len implements workqueue.Queue.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// Oldest is since when the first of all lines waits, zero when none does.
func (q *Queue[T]) Oldest() (oldest time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, line := range q.lines {
		if since := line[0].since; oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

// Pop implements workqueue.Queue: the first of the namespace whose turn it is.
func (q *Queue[T]) Pop() T {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := q.turns[0]
	q.turns = q.turns[1:]
	line := q.lines[namespace]
	item := line[0].item
	line[0] = inLine[T]{}
	if line = line[1:]; len(line) > 0 {
		q.lines[namespace] = line
		q.turns = append(q.turns, namespace)
	} else {
		delete(q.lines, namespace)
	}
	q.total--
	return item
}
