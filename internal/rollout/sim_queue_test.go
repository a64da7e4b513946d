package rollout_test

import (
	"container/heap"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// timed is what happens at a time.
type timed struct {
	at  time.Time
	n   int // of two at the same time, the first that was asked for goes first
	do  func()
	ref workload.Ref
}

// agenda is a heap of what happens later.
type agenda []timed

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].n < a[j].n
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(timed)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func (a *agenda) put(t timed) { heap.Push(a, t) }

func (a *agenda) take() timed { return heap.Pop(a).(timed) }

// queue is a work queue at a simulated time, for one worker: who is in it already is
// not added, and of two times to be added the earlier one counts.
type queue struct {
	w       *world
	line    []workload.Ref
	queued  map[workload.Ref]bool
	later   agenda
	due     map[workload.Ref]time.Time
	retries map[workload.Ref]int
	n       int
}

func newQueue(w *world) *queue {
	return &queue{w: w, queued: map[workload.Ref]bool{}, due: map[workload.Ref]time.Time{}, retries: map[workload.Ref]int{}}
}

func (q *queue) add(ref workload.Ref) {
	if !q.queued[ref] {
		q.queued[ref] = true
		q.line = append(q.line, ref)
	}
}

func (q *queue) addAfter(ref workload.Ref, wait time.Duration) {
	if wait <= 0 {
		q.add(ref)
		return
	}
	at := q.w.now.Add(wait)
	if known, waits := q.due[ref]; waits && !at.Before(known) {
		return
	}
	q.due[ref] = at
	q.n++
	q.later.put(timed{at: at, n: q.n, ref: ref})
}

func (q *queue) addRateLimited(ref workload.Ref) {
	q.addAfter(ref, min(rollout.FirstRetry<<min(q.retries[ref], 20), rollout.LastRetry))
	q.retries[ref]++
}

func (q *queue) forget(ref workload.Ref) { delete(q.retries, ref) }

func (q *queue) get() (workload.Ref, bool) {
	if len(q.line) == 0 {
		return workload.Ref{}, false
	}
	ref := q.line[0]
	q.line = q.line[1:]
	delete(q.queued, ref)
	return ref, true
}

// wake moves what is due, and returns when something is due next; zero: never.
func (q *queue) wake() time.Time {
	for len(q.later) > 0 {
		first := q.later[0]
		if known, waits := q.due[first.ref]; !waits || !known.Equal(first.at) {
			q.later.take() // it was asked for earlier
			continue
		}
		if first.at.After(q.w.now) {
			return first.at
		}
		q.later.take()
		delete(q.due, first.ref)
		q.add(first.ref)
	}
	return time.Time{}
}
