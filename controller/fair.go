package controller

import (
	"sync"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// fair is a workqueue.Queue in which each namespace has a line of its own, and the lines
// take turns: a thousand workloads of one do not keep those of another waiting. It has a
// lock for metrics, which do not hold that of the workqueue.
type fair struct {
	now func() time.Time

	mu    sync.Mutex
	lines map[string][]inLine
	turns []string // the namespaces that have a line, the next one first
	total int
}

// inLine is a workload that waits, and since when.
type inLine struct {
	user  workload.Ref
	since time.Time
}

func newFair(now func() time.Time) *fair { return &fair{now: now, lines: map[string][]inLine{}} }

// Touch implements workqueue.Queue: a workload that waits already keeps its place.
func (*fair) Touch(workload.Ref) {}

func (f *fair) Push(user workload.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line, waiting := f.lines[user.Namespace]
	if !waiting {
		f.turns = append(f.turns, user.Namespace)
	}
	f.lines[user.Namespace] = append(line, inLine{user, f.now()})
	f.total++
}

func (f *fair) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// oldest is since when the first of all lines waits, zero when none does.
func (f *fair) oldest() (oldest time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.lines {
		if since := line[0].since; oldest.IsZero() || since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}

func (f *fair) Pop() workload.Ref {
	f.mu.Lock()
	defer f.mu.Unlock()
	namespace := f.turns[0]
	f.turns = f.turns[1:]
	line := f.lines[namespace]
	user := line[0].user
	line[0] = inLine{}
	if line = line[1:]; len(line) > 0 {
		f.lines[namespace] = line
		f.turns = append(f.turns, namespace)
	} else {
		delete(f.lines, namespace)
	}
	f.total--
	return user
}
