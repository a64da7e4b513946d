package rollout

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Orders are what has come of looking at everything.
type Orders struct {
	// Roll are the workloads whose turn has come. Held wait for a change that has just been
	// halted. Look at all of them.
	Roll, Held []workload.Ref
	// Halted, Resumed and Finished are for people.
	Halted, Resumed, Finished []News
	// Ended is what became of rollouts.
	Ended []Ended
	// At is when to ask again; zero: when something happens.
	At time.Time
}

// News is what has become of a change.
type News struct {
	Sources []SourceRef
	By      workload.Ref // the workload that has failed with it, or declined it
	Foreign bool         // it is in another namespace, and By is not told
	Why     string       // it has failed; "": an undo of it has declined the content
	Settled int          // how many have rolled for it, but for those of Broken
	Broken  int          // how many had nothing available before, and have failed with it
}

func (o *Orders) again(at time.Time) {
	if !at.IsZero() && (o.At.IsZero() || at.Before(o.At)) {
		o.At = at
	}
}

// againAfter asks for that, if it is still to come.
func (o *Orders) againAfter(at, now time.Time) {
	if at.After(now) {
		o.again(at)
	}
}

// Next does what time has brought, judges which changes are halted, and gives the turns
// that have come. It costs what has happened since it was last asked, and one look at
// each open change.
func (p *Plan) Next(now time.Time) (out Orders) {
	p.requeued = false
	if p.leads && now.Sub(p.recounted) >= recountEvery {
		p.budget()
		p.Recount(now)
	}
	out.again(p.ring(now))
	p.judge(now, &out)
	if p.unexamined > 0 && p.opens.After(now) {
		out.again(p.opens)
		return out
	}
	p.grant(now, &out)
	p.requeued = false
	return out
}

// judge says which of the changes to recheck are halted since now, which go on, and which
// are over.
func (p *Plan) judge(now time.Time, out *Orders) {
	for len(p.toRecheck) > 0 {
		toRecheck := p.toRecheck
		p.toRecheck = nil
		slices.SortFunc(toRecheck, func(a, b *change) int { return cmp.Compare(a.number, b.number) })
		for _, c := range toRecheck {
			if c.toRecheck = false; c.into == nil {
				p.judgeOne(c, now, out)
			}
		}
	}
	p.open = slices.DeleteFunc(p.open, func(c *change) bool { return c.into != nil || c.over })
	if len(p.open) == 0 {
		clear(p.turns)
	}
}

func (p *Plan) judgeOne(c *change, now time.Time, out *Orders) {
	if stop := p.stopOf(c); (stop == nil) != (c.stop == nil) {
		c.stop = stop
		p.renew(c, now)
	} else {
		c.stop = stop
	}
	for _, g := range c.groups { // also of one that somebody lets go on: that is no word on the others
		if len(c.failures) > 0 {
			g.stopped[c] = struct{}{}
		} else {
			delete(g.stopped, c)
		}
	}
	switch {
	case c.waiting == 0:
	case c.stop != nil && c.halted != c.stop.ref:
		c.halted = c.stop.ref
		p.hold(c, out)
		out.Halted = append(out.Halted, News{Sources: c.sources(), By: c.halted, Why: c.stop.whyStops(c)})
	case c.stop == nil && c.halted != (workload.Ref{}):
		out.Resumed = append(out.Resumed, News{Sources: c.sources(), By: c.halted})
		c.halted = workload.Ref{}
	}
	if c.waiting > 0 {
		return
	}
	for _, r := range sortedRecords(maps.Keys(c.members)) {
		if r.attempt != nil && r.attempt.failed() && len(r.unseen) == 0 && !r.awaited() {
			p.fall(r, now)
		}
	}
	if c.attempts == 0 && !c.declinedForOthers() && (c.unseen <= 0 || !now.Before(c.born.Add(openWithin))) {
		p.finish(c, out)
	}
}

// renew counts the waiters of a change anew, after a halt has begun or ended: waiters
// of a halted change do not delay those that go last. A turn that had come is over.
func (p *Plan) renew(c *change, now time.Time) {
	for _, r := range sortedRecords(maps.Keys(c.members)) {
		if r.waits != nil {
			goesOn := r.toMend() || c.declinedBy(r)
			p.update(r, now, func() {
				if c.halts() && !goesOn {
					r.waits.granted = time.Time{} // it was not looked at since its turn came
				}
			})
		}
	}
}

// hold has all waiters of a change looked at.
func (p *Plan) hold(c *change, out *Orders) {
	for _, r := range sortedRecords(maps.Keys(c.members)) {
		if r.waits != nil {
			out.Held = append(out.Held, r.ref)
		}
	}
}

// stopOf is the workload that halts a change, nil when none does. Of several it is
// always the same one, so that people are told once.
func (p *Plan) stopOf(c *change) (stop *record) {
	if len(c.contents) == 0 {
		return nil
	}
	for r, began := range c.failures {
		if p.released(c, began) && !p.declinesStill(r, c) {
			continue
		}
		if stop == nil || r.ref == c.halted || stop.ref != c.halted && r.ref.Compare(stop.ref) < 0 {
			stop = r
		}
	}
	return stop
}

// awaited reports whether anybody waits for a rollout that has failed, or may yet have
// to, in any of the namespaces that have a copy.
func (r *record) awaited() bool {
	for i := range r.counted {
		n := &r.counted[i]
		open := n.change.waiting + n.change.under
		for _, g := range n.change.groups {
			open = max(open, g.waiting+g.under)
		}
		if n.failed && open > 0 {
			return true
		}
	}
	return false
}

// finish forgets a change for which nothing is left to do.
func (p *Plan) finish(c *change, out *Orders) {
	c.over = true
	well := c.halted == (workload.Ref{}) && !c.failed && len(c.failures) == 0
	for at, content := range c.contents {
		if p.changes[at] != nil && p.changes[at].root() == c {
			delete(p.changes, at)
			p.remember(at, content, c, well)
		}
		c.detach(at)
	}
	if c.settled > 1 && well {
		out.Finished = append(out.Finished, News{Sources: c.sources(), Settled: c.settled - c.broken, Broken: c.broken})
	}
}

// mostEnded is how many changes that have ended are known of.
const mostEnded = 4096

// grant gives turns while there are slots and steps allow.
func (p *Plan) grant(now time.Time, out *Orders) {
	for _, c := range p.open {
		p.judgeForeign(c, now, out)
	}
	for {
		var best *waiter
		for _, c := range p.open {
			if c.waiting == 0 {
				continue
			}
			w := p.first(c, now, out)
			if w != nil && (best == nil || p.precedes(w, best, now)) {
				best = w
			}
		}
		if best == nil {
			return
		}
		r := p.records[best.ref]
		for _, c := range best.on {
			c.waitingSince = time.Time{}
			for _, g := range c.groups {
				g.turn = now
			}
		}
		p.turns[r.ref.Namespace] = now
		p.update(r, now, func() { best.granted = now })
		out.Roll = append(out.Roll, best.ref)
		p.judge(now, out)
	}
}

// precedes orders those that are first in their changes: by namespaces that have waited
// for a turn for longer than any should; then the namespace with the fewest rollouts
// under way, the change that has waited longest since it had a turn, and, of equals,
// neither the alphabet nor the order in which the API server tells of them.
func (p *Plan) precedes(a, b *waiter, now time.Time) bool {
	waits := func(w *waiter) time.Time { // since when its namespace waits
		if turn := p.turns[w.ref.Namespace]; turn.After(w.home.waitingSince) {
			return turn
		}
		return w.home.waitingSince
	}
	long := func(w *waiter) bool { return now.Sub(waits(w)) > servedWithin*p.limits.RolloutDeadline }
	if long(a) != long(b) {
		return long(a)
	}
	if few := cmp.Compare(p.underIn[a.ref.Namespace], p.underIn[b.ref.Namespace]); few != 0 && !long(a) {
		return few < 0
	}
	if longest := a.home.waitsSince().Compare(b.home.waitsSince()); longest != 0 {
		return longest < 0
	}
	return a.home.tieBreak() < b.home.tieBreak()
}

// waitsSince is since when a change waits for a turn, or another copy had one.
func (c *change) waitsSince() time.Time {
	since := c.waitingSince
	for _, g := range c.groups {
		if g.turn.After(since) {
			since = g.turn
		}
	}
	return since
}

// tieBreak is a number by which equals are told apart, that nobody can choose.
func (c *change) tieBreak() uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(c.namespace + strconv.FormatInt(c.born.UnixNano(), 36) + strconv.FormatUint(c.number, 36)))
	return hash.Sum64()
}

// Counts are the numbers of changes by state, of rollouts under way, and of workloads
// that a halt holds.
type Counts struct{ Rolling, Waiting, Halted, Unsettled, Held int }

// Counts counts.
func (p *Plan) Counts() (n Counts) {
	n.Unsettled = p.under
	held := map[*record]bool{}
	for _, c := range p.open {
		switch {
		case c.into != nil || c.over || c.waiting+c.attempts == 0:
		case c.halted != (workload.Ref{}) || c.foreign:
			n.Halted++
			for r := range c.members {
				held[r] = held[r] || r.waits != nil
			}
		case c.under > 0:
			n.Rolling++
		default:
			n.Waiting++
		}
	}
	for _, waits := range held {
		if waits {
			n.Held++
		}
	}
	return n
}
