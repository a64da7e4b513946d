package rollout

import (
	"container/heap"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// mostTried bounds how many waiters of a change are tried at once. The others are
// tried when something has happened.
const mostTried = 64

// first is the waiter of a change that may roll now, nil when none may.
func (p *Plan) first(c *change, now time.Time, out *Orders) *waiter {
	fits := func(w *waiter) bool { return p.fits(w, now, out) }
	free := p.slotFree(c.namespace)
	joins := func(w *waiter) bool { return fits(w) && p.joins(p.records[w.ref]) }
	gets := func(w *waiter) bool {
		if !fits(w) {
			return false
		}
		if c.waitingSince.IsZero() {
			c.waitingSince = now
		}
		return free || p.joins(p.records[w.ref])
	}
	switch {
	case c.stop != nil: // one that holds up others may always be fixed
		return c.try(&c.last, gets)
	case len(c.ready)+len(c.holding) == 0 && len(c.busy) == 0:
		return c.try(&c.last, gets)
	case len(c.ready)+len(c.holding) == 0:
		if c.under > 0 {
			return nil // they are waited for while others roll, and never for each other
		}
		return c.try(&c.busy, gets)
	}
	first := c.try(&c.holding, joins)
	if len(c.ready) == 0 || !c.anyRoom(&p.limits) {
		return first
	}
	if c.waitingSince.IsZero() && fits(c.ready[0]) {
		c.waitingSince = now
	}
	if !free {
		return first
	}
	if w := c.try(&c.ready, fits); w != nil && (first == nil || w.before(first)) {
		return w
	}
	return first
}

// try gives the first of a queue that is accepted. Those that are not may have moved
// to the queue of another change, which keeps them out.
func (c *change) try(q *queue, accept func(*waiter) bool) (first *waiter) {
	var tried []*waiter
	for range mostTried {
		if len(*q) == 0 {
			break
		}
		w := (*q)[0]
		if accept(w) {
			first = w
			break
		}
		if w.queue == q {
			heap.Pop(q)
			tried = append(tried, w)
		}
	}
	for _, w := range tried {
		heap.Push(q, w)
	}
	return first
}

// fits reports whether the changes of a waiter let it roll. One that another change
// keeps out waits in the queues of that one.
func (p *Plan) fits(w *waiter, now time.Time, out *Orders) bool {
	r := p.records[w.ref]
	for _, c := range w.on {
		if p.admits(c, r, now, out) {
			continue
		}
		if c != w.home {
			w.leave()
			w.home = c
			heap.Push(p.queueOf(r, now), w)
		}
		return false
	}
	return true
}

// admits reports whether a change lets a waiter roll.
func (p *Plan) admits(c *change, r *record, now time.Time, out *Orders) bool {
	w := r.waits
	if opens := c.opens(now); !opens.IsZero() {
		out.again(opens)
		return false
	}
	if c.stop != nil && (!w.last || !r.toMend() && !c.declinedBy(r)) {
		return false
	}
	if w.last && c.healthy > 0 {
		return false // others first
	}
	var mine tally // what it counts itself
	for i := range r.counted {
		if n := &r.counted[i]; n.change == c {
			mine = n.tally
		}
	}
	own := mine.under
	if w.last {
		own = mine.lacking
	}
	for _, source := range w.sources {
		at := SourceRef{w.ref.Namespace, source}
		if _, its := c.contents[at]; !its {
			continue
		}
		under, ended := c.progress(at, w.last)
		if all, proven := c.progress(at, false); w.last && proven == 0 && all-under > mine.under-mine.lacking {
			return false // who lacks nothing is to prove it first
		}
		if w.silent && under > own {
			return false
		}
		trials, until := -1, time.Time{}
		if g := c.groups[at]; g != nil {
			trials, until = p.trials(g, c, at, now)
		}
		switch {
		case until.After(now):
			out.again(until)
			return false
		case trials < 0 && !p.limits.room(under-own, ended), trials >= 0 && (under-own >= trials || c.under > mine.under):
			return false
		}
	}
	return true
}

// opens is until when a change waits for workloads to be looked at, those of its copies
// as well, or for copies that are about to change again; zero: it does not.
func (c *change) opens(now time.Time) time.Time {
	unseen, opens := c.unseen, time.Time{}
	for _, g := range c.groups {
		unseen = max(unseen, g.unseen)
		if until := g.left.Add(replicatedWithin); until.After(now) {
			opens = until
		}
	}
	if until := c.born.Add(openWithin); unseen > 0 && until.After(now) {
		return until
	}
	return opens
}

// progress is how many are under way for a source of a change, and how many its steps
// count: those that became healthy. Those that lacked replicas count by themselves, as what
// others have proven says little of them.
func (c *change) progress(at SourceRef, lacking bool) (under, ended int) {
	g := c.groups[at]
	switch {
	case lacking && g != nil:
		return max(c.lacking, g.lacking), g.lacked
	case lacking:
		return c.lacking, c.lacked
	case g != nil:
		return max(c.under, g.under), g.proven
	}
	return c.under, c.proven[at]
}

// anyRoom reports whether the steps may have room for one more.
func (c *change) anyRoom(limits *Limits) bool {
	for at := range c.contents {
		if g := c.groups[at]; limits.room(c.progress(at, false)) || g != nil && len(g.stopped) > 0 {
			return true
		}
	}
	return false
}

func (p *Plan) slotFree(namespace string) bool {
	return p.under < p.slots && p.underIn[namespace] < p.slotsIn
}

// needsSlot reports whether a rollout of a waiter is one more.
func (p *Plan) needsSlot(r *record) bool { return !r.waits.mute && !r.rolls() }

// joins reports whether a waiter rolls without a slot more: it needs none, or has one. What we
// have begun is fixed at once, however many are under way. But a new leader takes rollouts of
// others for ours, as it cannot tell them apart: who begins in the place of such a one is one
// more. So there nobody does while there are more than slots.
func (p *Plan) joins(r *record) bool {
	if p.needsSlot(r) {
		return false
	}
	return r.waits.mute || !r.attempt.found || p.under <= p.slots && p.underIn[r.ref.Namespace] <= p.slotsIn
}

// rolls reports whether a workload has a rollout of ours under way, which holds a slot.
func (r *record) rolls() bool {
	a := r.attempt
	return a != nil && a.state == rolling && (len(a.counts) > 0 || !a.found || a.ours)
}

// holdsUp reports whether a workload has failed for a change.
func (r *record) holdsUp() bool {
	a := r.attempt
	if a == nil || !a.failed() {
		return false
	}
	for _, proves := range a.counts {
		if proves {
			return true
		}
	}
	return len(a.holds) > 0
}

// broken reports whether a workload has failed with what a source held.
func (r *record) broken() bool { return r.holdsUp() || r.fallen != nil }

// toMend reports whether a workload has failed for a change, and may be mended by what else
// it waits for: one that an undo has mended is well.
func (r *record) toMend() bool { return r.holdsUp() && !r.attempt.mended }

// line puts a waiter that is awake into a queue.
func (p *Plan) line(r *record, now time.Time) {
	w := r.waits
	if !w.granted.IsZero() || w.due.After(now) {
		return
	}
	if w.home == nil || !slices.Contains(w.on, w.home) {
		for _, c := range w.on {
			if w.home = w.on[0]; c.number < w.home.number {
				w.home = c
			}
		}
	}
	heap.Push(p.queueOf(r, now), w)
}

// queueOf is the queue of its home in which a waiter stands.
func (p *Plan) queueOf(r *record, now time.Time) *queue {
	w := r.waits
	switch {
	case w.busy && p.patient(w).After(now):
		return &w.home.busy
	case w.last:
		return &w.home.last
	case !p.needsSlot(r):
		return &w.home.holding
	}
	return &w.home.ready
}

// judgeForeign tells people of a change that failures in other namespaces halt, or
// halt no longer.
func (p *Plan) judgeForeign(c *change, now time.Time, out *Orders) {
	halted := false
	for at, g := range c.groups {
		_, until := p.trials(g, c, at, now)
		halted = halted || !until.IsZero()
	}
	halted = halted && c.stop == nil
	if halted == c.foreign || halted && c.waiting == 0 {
		return
	}
	c.foreign = halted
	p.renew(c, now)
	news := News{Sources: c.sources(), Foreign: true}
	if halted {
		p.hold(c, out)
		out.Halted = append(out.Halted, news)
	} else if c.halted == (workload.Ref{}) {
		out.Resumed = append(out.Resumed, news)
	}
}
