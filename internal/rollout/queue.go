package rollout

import (
	"cmp"
	"container/heap"
)

// queues are the waiters of a change that are awake: each stands in one queue of one of
// its changes.
type queues struct {
	ready   queue // they need a slot
	holding queue // they need none: they hold one, or cannot report health
	busy    queue // they roll for another reason, and are waited for
	last    queue // they lack replicas
}

// queue is a heap of waiters, the next one first. It implements
// container/heap.Interface.
type queue []*waiter

func (q *queue) Len() int           { return len(*q) }
func (q *queue) Less(i, j int) bool { return (*q)[i].before((*q)[j]) }
func (q *queue) Swap(i, j int) {
	(*q)[i], (*q)[j] = (*q)[j], (*q)[i]
	(*q)[i].index, (*q)[j].index = i, j
}

func (q *queue) Push(one any) {
	w, _ := one.(*waiter)
	w.queue, w.index = q, len(*q)
	*q = append(*q, w)
}

func (q *queue) Pop() any {
	end := len(*q) - 1
	w := (*q)[end]
	(*q)[end] = nil
	*q = (*q)[:end]
	w.queue = nil
	return w
}

// leave takes a waiter out of its queue.
func (w *waiter) leave() {
	if w.queue != nil {
		heap.Remove(w.queue, w.index)
	}
}

// before is the order within a change: by tries, by order, those that serve, those that are
// updated while others serve, the smaller ones.
func (w *waiter) before(other *waiter) bool {
	switch {
	case w.tries != other.tries:
		return w.tries < other.tries
	case w.order != other.order:
		return w.order < other.order
	case w.down != other.down:
		return other.down
	case w.careful != other.careful:
		return other.careful
	case w.size != other.size:
		return w.size < other.size
	}
	return cmp.Or(cmp.Compare(w.ref.Name, other.ref.Name), cmp.Compare(w.ref.Kind.Resource, other.ref.Kind.Resource)) < 0
}
