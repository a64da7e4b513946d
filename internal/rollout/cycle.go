package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Cycle does what is due: it judges rollouts, says which changes halt and which go on, and gives
// the turns that have come. It counts anew how many are in each state.
func (p *Planner) Cycle(now time.Time) (out Orders) {
	if p.Off() {
		p.forget(now)
		return out
	}
	if now.Sub(p.budgeted) >= budgetEvery { // it asks for all workloads
		p.budgeted, p.slots = now, p.limits.Unsettled.Slots(p.cluster.Workloads())
		p.slotsIn = PerNamespace(p.slots, p.limits.UnsettledPerNamespace)
	}
	out.Look, p.toLook = p.toLook, nil
	p.expire(now, &out)
	p.countAll(now)
	for p.watchAll(now, &out) || p.watchFirst(now, &out) {
		p.countAll(now)
	}
	for _, t := range p.all {
		if t.facts != nil {
			t.facts.Pods, t.facts.Muted, t.facts.LastRoll, t.facts.Nodes = nil, nil, nil, nil // they are of one moment
		}
	}
	p.giveBack(now, &out)
	for _, c := range slices.Clone(p.open) {
		p.announce(c, now, &out)
	}
	p.sum(now)
	if len(p.unexamined) == 0 || !out.again(p.opens, now) {
		p.grantAll(now, &out)
	}
	p.noteChanged(&out)
	p.finish(now, &out)
	p.forget(now)
	slices.SortFunc(out.Look, workload.Ref.Compare)
	out.Look = slices.Compact(out.Look)
	return out
}

// budgetEvery is how often the slots are counted anew.
const budgetEvery = time.Minute

// expire takes back what lasted for too long: turns that were not taken, and what is kept of
// workloads that are gone. It says when the next is due.
func (p *Planner) expire(now time.Time, out *Orders) {
	for _, t := range p.all {
		if !t.since.IsZero() {
			out.again(t.due, now)
			out.again(t.retry, now)
			out.again(t.since.Add(longestTrial*p.limits.RolloutDeadline), now)
		}
		if t.turn != nil && !out.again(t.turn.at.Add(lookWithin), now) && (!t.uncertain || !out.again(t.turn.at.Add(p.limits.RolloutDeadline), now)) {
			t.turn = nil
			t.retriesAfter(LastRetry, now)
			out.again(t.retry, now)
			out.Look = append(out.Look, t.ref)
		}
		if t.trial != nil {
			out.again(t.trial.slotEnds(&p.limits), now)
		}
		if !t.gone.IsZero() && !out.again(t.gone.Add(p.limits.RolloutDeadline), now) {
			t.trial, t.facts = nil, nil
			t.leaves(func(its *part) bool { return its.take == nil || its.take.state != Proven })
		}
	}
}

// announce says whether a change has halted, or goes on.
func (p *Planner) announce(c *opened, now time.Time, out *Orders) {
	switch {
	case c.stop != nil && c.halted != c.stop.track.ref && c.waiting > 0:
		c.halted = c.stop.track.ref
		c.hold(out)
		out.Halted = append(out.Halted, News{Source: c.at, By: c.halted, Why: c.stop.failure()})
	case c.stop == nil && c.halted != workload.Ref{}:
		out.Resumed = append(out.Resumed, News{Source: c.at, By: c.halted})
		c.halted = workload.Ref{}
	}
	_, until := p.foreignLimit(c, now)
	foreign := !until.IsZero() && c.stop == nil
	if foreign == c.foreign || foreign && c.waiting == 0 {
		return
	}
	c.foreign = foreign
	news := News{Source: c.at, Foreign: true}
	if foreign {
		c.hold(out)
		out.Halted = append(out.Halted, news)
	} else if c.halted == (workload.Ref{}) {
		out.Resumed = append(out.Resumed, news)
	}
}

// hold takes back turns that were not taken yet, and has all who wait looked at.
func (c *opened) hold(out *Orders) {
	for _, its := range c.parts {
		if its.waits() != Waiting {
			continue
		}
		if t := its.track; t.turn != nil && !t.uncertain && !its.over() {
			t.turn = nil
		}
		out.Look = append(out.Look, its.track.ref)
	}
}

// forget drops what is over: what carries over, and was not tried for a day, and failures of what
// was down.
func (p *Planner) forget(now time.Time) {
	p.forgetAttempts(now)
	p.all = slices.DeleteFunc(p.all, func(t *track) bool {
		for _, its := range t.parts {
			if its.over() && now.Sub(its.since) >= remembered {
				its.take = nil
			}
		}
		if t.trial != nil && t.trial.failed && !t.halts() {
			t.trial = nil // its failure halts nothing
		}
		if !t.idle(now) {
			return false
		}
		delete(p.tracks, t.ref)
		return true
	})
}

// finish closes the changes for which nothing is left to do: nobody waits, and all who took the
// content have shown how they do. Copies are closed together.
func (p *Planner) finish(now time.Time, out *Orders) {
	p.open = slices.DeleteFunc(p.open, func(c *opened) bool {
		if !c.isOver(now, out) {
			return false
		}
		delete(p.changes, c.at)
		if c.proven > 0 {
			if len(p.ended) >= mostEnded {
				clear(p.ended) // they prove themselves again
			}
			p.ended[c.at] = ended{c.content, c.proven}
		}
		if settled := c.settled() + c.broken; settled > 1 && c.before == 0 {
			out.Finished = append(out.Finished, News{Source: c.at, Settled: c.settled(), Broken: c.broken})
		}
		c.closed = true
		out.Changed = append(out.Changed, c.at)
		return true
	})
	for _, t := range p.all {
		t.parts = slices.DeleteFunc(t.parts, func(its *part) bool { return its.change.closed })
	}
	if len(p.open) == 0 {
		clear(p.turns)
		clear(p.left)
	}
}

// isOver reports whether nothing is left to do of a change. A copy may follow within a while.
func (c *opened) isOver(now time.Time, out *Orders) bool {
	switch n := c.all(); {
	case n.waiting+n.trials+n.standing+n.failures > 0 || c.stillCarried():
		return false
	case n.unseen > 0:
		return !out.again(c.readBy, now)
	case c.copied():
		return !out.again(c.born.Add(replicatedWithin), now)
	}
	return true
}

// stillCarried reports whether a workload is open with older content, whether it may take newer or not.
func (c *opened) stillCarried() bool {
	return slices.ContainsFunc(c.copies.changes, func(other *opened) bool { return slices.ContainsFunc(other.parts, (*part).over) })
}

// Counts counts.
func (p *Planner) Counts() (n Counts) {
	n.Unsettled = p.under
	held := map[*track]struct{}{}
	for _, c := range p.open {
		switch {
		case c.waiting+c.trials+c.standing+c.failures == 0:
		case c.halted != (workload.Ref{}) || c.foreign:
			n.Halted++
			for _, its := range c.parts {
				if its.waits() == Waiting {
					held[its.track] = struct{}{}
				}
			}
		case c.trials > 0:
			n.Rolling++
		default:
			n.Waiting++
		}
	}
	n.Held = len(held)
	return n
}

// mostEnded is how many changes that have ended are known of.
const mostEnded = 4096
