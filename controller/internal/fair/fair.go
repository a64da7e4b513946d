// Package fair is a queue of workloads in which no namespace keeps others waiting. It does
// not know what they wait for.
package fair

import (
	"sync"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Queue is a workqueue.Queue in which each namespace has a line of its own, and the lines
// take turns: a thousand workloads of one do not keep those of another waiting. It has a
// lock for metrics, which do not hold that of the workqueue.
type Queue struct {
	now func() time.Time

	mu    sync.Mutex
	lines map[string][]inLine
	turns []string // the namespaces that have a line, the next one first
	total int
}

// inLine is a workload that waits, and since when.
type inLine struct {
	ref   workload.Ref
	since time.Time
}

// New makes a Queue by a clock.
func New(now func() time.Time) *Queue { return &Queue{now: now, lines: map[string][]inLine{}} }

// Touch implements workqueue.Queue: a workload that waits already keeps its place.
func (*Queue) Touch(workload.Ref) {}

// Push implements workqueue.Queue.
func (q *Queue) Push(ref workload.Ref) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line, waiting := q.lines[ref.Namespace]
	if !waiting {
		q.turns = append(q.turns, ref.Namespace)
	}
	q.lines[ref.Namespace] = append(line, inLine{ref, q.now()})
	q.total++
}

// Len implements workqueue.Queue.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// Oldest is since when the first of all lines waits, zero when none does.
func (q *Queue) Oldest() (oldest time.Time) {
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
func (q *Queue) Pop() workload.Ref {
	q.mu.Lock()
	defer q.mu.Unlock()
	namespace := q.turns[0]
	q.turns = q.turns[1:]
	line := q.lines[namespace]
	ref := line[0].ref
	line[0] = inLine{}
	if line = line[1:]; len(line) > 0 {
		q.lines[namespace] = line
		q.turns = append(q.turns, namespace)
	} else {
		delete(q.lines, namespace)
	}
	q.total--
	return ref
}
