package rollout

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// grantAll gives turns while there are slots and steps allow: of each change the next one is asked
// for, and of these the one goes first that precedes the others.
func (p *Planner) grantAll(now time.Time, out *Orders) {
	for {
		var best *track
		var home *opened
		for _, c := range p.open {
			if len(c.queue) == 0 {
				continue
			}
			if t := p.next(c, now, out); t != nil && (best == nil || p.precedes(t, c, best, home, now)) {
				best, home = t, c
			}
		}
		if best == nil {
			return
		}
		p.grant(best, now, out)
	}
}

// precedes orders those that are next in their changes: by namespaces that have waited for a
// turn for longer than any should; then the namespace with the fewest rollouts under way, the
// change that has waited longest since it had a turn, and, of equals, neither the alphabet nor the
// order in which the API server tells of them.
func (p *Planner) precedes(a *track, of *opened, b *track, other *opened, now time.Time) bool {
	long := func(t *track, c *opened) bool {
		waits := now.Sub(latest(c.waitingSince, p.turns[t.ref.Namespace]))
		return waits > servedWithin*p.limits.RolloutDeadline
	}
	longA, longB := long(a, of), long(b, other)
	if longA != longB {
		return longA
	}
	if few := cmp.Compare(p.underIn[a.ref.Namespace], p.underIn[b.ref.Namespace]); few != 0 && !longA {
		return few < 0
	}
	if longest := of.waitsSince().Compare(other.waitsSince()); longest != 0 {
		return longest < 0
	}
	return of.tieBreak() < other.tieBreak()
}

// waitsSince is since when a change waits for a turn, or another copy had one.
func (c *opened) waitsSince() time.Time { return latest(c.waitingSince, c.copies.turn) }

// tieBreak is a number by which equals are told apart, that nobody can choose.
func (c *opened) tieBreak() uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.at.Namespace + strconv.FormatInt(c.born.UnixNano(), 36) + strconv.FormatUint(c.number, 36)))
	return hash.Sum64()
}

// next is the workload of a change that may roll now, nil when none may.
func (p *Planner) next(c *opened, now time.Time, out *Orders) *track {
	free := p.slotIsFree(c.at.Namespace)
	if c.stop != nil && c.mending == 0 || !free && c.joining == 0 && !c.waitingSince.IsZero() {
		return nil
	}
	if !c.sorted {
		slices.SortFunc(c.queue, (*part).compare)
		c.sorted = true
	}
	for ; c.tried < len(c.queue); c.tried++ { // a turn leaves less room: what does not fit now does not fit in this cycle
		t := c.queue[c.tried].track
		if t.turn != nil || !p.fits(t, now, out) {
			continue
		}
		if c.waitingSince.IsZero() {
			c.waitingSince = now
		}
		if free || !t.needsSlot(&p.limits, now) {
			return t
		}
	}
	return nil
}

// compare orders the workloads waiting for one change: carried-over ones first, and of these the one that
// took the content before; then those that may carry over, and those not blocked by another halt; then by
// tries, order, class and size.
func (p *part) compare(other *part) int {
	a, b := p.track, other.track
	return cmp.Or(one(other.over())-one(p.over()), one(b.ref == other.change.again)-one(a.ref == p.change.again), one(other.suspect())-one(p.suspect()), one(a.blocked)-one(b.blocked), cmp.Compare(a.tries, b.tries), cmp.Compare(a.order(), b.order()), cmp.Compare(a.class, b.class),
		cmp.Compare(a.facts.Status.Wanted, b.facts.Status.Wanted), cmp.Compare(a.ref.Name, b.ref.Name), cmp.Compare(a.ref.Kind.Resource, b.ref.Kind.Resource))
}

// fits reports whether all changes of a workload let it roll, those too for which it does not wait if the
// webhook would give it content that the watch has not delivered. One of which a source was edited since it
// was looked at may wait for that as well.
func (p *Planner) fits(t *track, now time.Time, out *Orders) bool {
	if turns := len(out.Roll) + 1; t.fitted != turns {
		t.fitted = turns
		t.fits = !t.some(func(its *part) bool {
			return t.facts.Mark < its.change.number || (its.waits() == Waiting || its.change.ahead > 0) && !p.admits(its, now, out)
		})
	}
	return t.fits
}

// admits reports whether a change lets a workload roll.
func (p *Planner) admits(its *part, now time.Time, out *Orders) bool {
	c, t := its.change, its.track
	if out.again(p.opensAt(c, now), now) || c.stop != nil && (!its.over() || its.returned && c.stop.declined) {
		return false
	}
	n, over := c.all(), its.over()
	if over && its.fell() { // it takes nothing from others
		if its.returned && c.failures > 0 { // another one has shown already what the content does
			return false
		}
		return c.trials == 0 || p.limits.room(n.trials, n.proven)
	}
	most, until := p.foreignLimit(c, now)
	if out.again(until, now) || n.fallen > 0 {
		return false
	}
	under, proven := n.trials+c.carried, n.proven
	if c.ahead > 0 { // the next one would take that content too, which nothing has proven
		proven = 0
	}
	switch {
	case over && its.isAhead(&p.limits, now): // its stamp may be older after all
		return n.trials <= 1 && c.carried == 0 && c.failures == 0
	case over:
		room := n.trials == 0 || most < 0 && p.limits.room(n.trials, proven)
		return room && c.failures == 0 && most != 0 && !its.followed()
	case t.lacks(): // others first, unless they may wait for it elsewhere
		if c.first <= t.order() && !t.mends && !its.suspect() || proven == 0 && under > n.lackTrials+c.lackCarried {
			return false
		}
		under, proven = n.lackTrials+c.lackCarried, min(proven, n.lackProven)
	case t.silent() && n.trials > 0:
		return false
	}
	if most >= 0 {
		return under < most && c.trials+c.carried == 0
	}
	return p.limits.room(under, proven)
}

// opensAt is until when a change waits for workloads to be looked at, those of its copies as
// well, or for copies that are about to follow others to newer content.
func (p *Planner) opensAt(c *opened, now time.Time) (until time.Time) {
	for _, other := range c.copies.changes {
		until = latest(until, other.readBy)
	}
	if until.After(now) {
		return until
	}
	return p.left[c.key].Add(replicatedWithin)
}

// foreignLimit returns how many workloads may try a change at once after failures in other namespaces;
// -1: as many as the steps allow. After failures in one namespace one more workload tries. After
// failures in two, all wait for the foreign halt, until which is returned, and then one more tries.
func (p *Planner) foreignLimit(c *opened, now time.Time) (trials int, until time.Time) {
	failed, last := 0, time.Time{}
	for _, other := range c.copies.failing {
		if other != c {
			failed, last = failed+1, latest(last, other.failed)
		}
	}
	switch {
	case failed == 0 || p.resumed(c.at, last):
		return -1, time.Time{}
	case failed == 1:
		return 1, time.Time{}
	}
	if until = last.Add(foreignHalt); until.After(now) {
		return 0, until
	}
	return 1, until
}

func (p *Planner) slotIsFree(namespace string) bool {
	return p.under < p.slots && p.underIn[namespace] < p.slotsIn
}

// grant gives a workload its turn.
func (p *Planner) grant(t *track, now time.Time, out *Orders) {
	if t.needsSlot(&p.limits, now) {
		p.under++
		p.underIn[t.ref.Namespace]++
	}
	t.turn = t.turnAt(now)
	for _, its := range t.parts {
		c := its.change
		if its.waits() != Waiting {
			continue
		}
		c.waitingSince, c.turn, c.copies.turn = time.Time{}, now, now
		if !t.turn.mute {
			c.tries(t.turn.lacked)
			c.all().tries(t.turn.lacked)
		}
	}
	p.turns[t.ref.Namespace] = now
	out.Roll = append(out.Roll, t.ref)
	out.again(now.Add(lookWithin), now)
}
