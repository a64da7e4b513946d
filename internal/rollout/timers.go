package rollout

import (
	"container/heap"
	"time"
)

// timers are the records for which something is due, the next one first. It
// implements container/heap.Interface.
type timers []timer

type timer struct {
	at     time.Time
	record *record
}

func (t *timers) Len() int           { return len(*t) }
func (t *timers) Less(i, j int) bool { return (*t)[i].at.Before((*t)[j].at) }
func (t *timers) Swap(i, j int)      { (*t)[i], (*t)[j] = (*t)[j], (*t)[i] }

func (t *timers) Push(one any) {
	next, _ := one.(timer)
	*t = append(*t, next)
}

func (t *timers) Pop() any {
	end := len(*t) - 1
	next := (*t)[end]
	(*t)[end] = timer{}
	*t = (*t)[:end]
	return next
}

// due is when something is due of a record: it wakes up, has been waited for for long
// enough, or holds a slot for too long. Zero: never.
func (p *Plan) due(r *record, now time.Time) (due time.Time) {
	sooner := func(at time.Time) {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	if w := r.waits; w != nil {
		switch {
		case !w.granted.IsZero():
			sooner(w.granted.Add(lookWithin))
		case w.due.After(now):
			sooner(w.due)
		case w.busy && p.patient(w).After(now):
			sooner(p.patient(w))
		}
	}
	if a := r.attempt; a != nil && a.state == rolling && r.slot {
		sooner(p.lapses(a))
	}
	return due
}

// lapses is when a rollout holds a slot no longer that has not been judged, as it could not be
// looked at, or is watched for long. It keeps its room in the step.
func (p *Plan) lapses(a *attempt) time.Time {
	return a.progressed().Add(p.limits.RolloutDeadline + lookWithin)
}

// patient is until when a workload that is busy is waited for.
func (p *Plan) patient(w *waiter) time.Time {
	return w.busyFrom.Add(p.limits.RolloutDeadline - w.busyFor)
}

// remind has a record looked after when something of it is due.
func (p *Plan) remind(r *record, now time.Time) {
	due := p.due(r, now)
	if due.IsZero() || !r.reminded.IsZero() && !due.Before(r.reminded) {
		return
	}
	r.reminded = due
	heap.Push(&p.timers, timer{due, r})
}

// ring does what is due, and returns when something is due next; zero: never.
func (p *Plan) ring(now time.Time) time.Time {
	for len(p.timers) > 0 {
		next := p.timers[0]
		if next.at.After(now) {
			return next.at
		}
		heap.Pop(&p.timers)
		r := next.record
		if !r.reminded.Equal(next.at) || p.records[r.ref] != r {
			continue // it was reminded earlier, or is forgotten
		}
		r.reminded = time.Time{}
		p.update(r, now, func() { p.overdue(r, now) })
	}
	return time.Time{}
}

// overdue takes back a turn that was not taken, and a slot that is held for too long,
// because the workload could not be looked at. That fails nothing.
func (p *Plan) overdue(r *record, now time.Time) {
	if w := r.waits; w != nil && !w.granted.IsZero() && !now.Before(w.granted.Add(lookWithin)) {
		w.giveBack(now)
		p.look(r.ref)
	}
	if a := r.attempt; a != nil && a.state == rolling && r.slot && !now.Before(p.lapses(a)) {
		a.state = lapsed
		p.look(r.ref)
	}
}

// giveBack takes the turn of a waiter back; it waits for another one.
func (w *waiter) giveBack(now time.Time) {
	w.granted = time.Time{}
	w.retry = now.Add(retryAfter(w.tries))
	w.due = w.retry
	w.tries++
}
