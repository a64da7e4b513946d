package rollout

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// record is all that is known of one workload. It is changed by Plan.update alone.
type record struct {
	ref workload.Ref
	// waits is its wait for a turn, nil when it does not.
	waits *waiter
	// attempt is the rollout that is followed, nil when there is none. missed is one that
	// was sent and did not come, or it is not known whether it came: then it is the attempt as well.
	attempt, missed *attempt
	// unseen are the changes that wait for it to be looked at; unexamined tells that it is
	// not known whether it rolled already when this process began to lead.
	unseen     []*change
	unexamined bool
	// unhealthy is what was on record when it failed and had not been healthy before.
	unhealthy *checksum.Records
	// fallen is a failure with sources for which no workload waits, until one does.
	fallen  *fallen
	pace    *pace
	finding *finding
	// declined is what an undo of it has sent back.
	declined map[SourceRef]decline

	gone     time.Time // since when there is no workload of its name; zero: there is
	reminded time.Time // when something of it is due, as far as timers know
	counted  []count   // what the tallies of changes count of it
	slot     bool      // it holds one
}

// idle reports whether nothing is known that has to be kept.
func (r *record) idle(now time.Time) bool {
	return r.waits == nil && r.attempt == nil && r.missed == nil && len(r.unseen) == 0 && !r.unexamined &&
		r.unhealthy == nil && r.fallen == nil && len(r.declined) == 0 && (r.pace == nil || now.Sub(r.pace.last()) > remembered) &&
		(r.finding == nil || now.Sub(r.finding.when) >= findingFor)
}

// waiter is a workload that would roll, but for its turn.
type waiter struct {
	ref     workload.Ref
	sources []checksum.Source
	records checksum.Records
	since   time.Time
	// due is when its sources have settled, and it may be tried again.
	due time.Time
	// level is how many replicas are available. last tells that it lacks some: it goes
	// last. down tells that it has none, and did not lose them by what its sources held
	// before: it has nothing to lose, so it halts nothing.
	level      int32
	last, down bool
	// busy tells that it rolls for another reason, or did a moment ago: it is waited for.
	busy     bool
	busyFrom time.Time     // since when it is; zero: it is not
	busyFor  time.Duration // before that
	// mute tells that it cannot report health: it is settled at once. silent tells that
	// it may change its status, which says nothing of health: it rolls alone.
	mute, silent bool
	// order is its place, careful that others are to go before it, size how many
	// replicas it has.
	order   int
	careful bool
	size    int32
	tries   int
	retry   time.Time // not before

	granted time.Time // when its turn came; zero: it has not

	on    []*change // its changes
	home  *change   // it stands in one of its queues
	queue *queue    // nil: in none
	index int       // in it
}

// unordered is the order of those that have none: they go after the others.
const unordered = math.MaxInt

// state is where an attempt is.
type state int

const (
	rolling   state = iota
	suspended       // it stands at a pause of its own: neither under way nor proven
	lapsed          // it was not judged for too long: it holds no slot, and keeps its room
	broken          // it has failed
)

// attempt is a workload that rolls, or has failed.
type attempt struct {
	trial
	state state
	// counts is for which changes it counts, and whether it can halt them.
	counts map[*change]bool
	// holds are the changes for which the workload has failed before: they stay
	// halted until it is healthy with what they brought.
	holds map[*change]hold
	// records is what was on record before, and rolled for which sources that is
	// another now.
	records checksum.Records
	rolled  []checksum.Source
	uid     string // of the workload
	lacked  bool   // replicas, when its turn came
	// down tells that it has nothing to lose, or cannot tell: its failure halts nothing.
	down    bool
	sources []SourceRef // for which it rolls
	ours    bool        // so it was, under another leader, for changes that are over
	before  *attempt    // the attempt that it replaces, nil: none
	tries   int
	retry   time.Time // when to try again, should it not have come
	why     string    // it has failed
	mended  bool      // it was healthy since, though not with what it has failed with
}

// hold is a failure of before: when that rollout began, and the sources for which
// it rolled.
type hold struct {
	began   time.Time
	sources []SourceRef
}

func (a *attempt) failed() bool { return a.state == broken }

// count is what the tally of one change counts of one workload.
type count struct {
	change *change
	tally
	failed bool
	began  time.Time
}

// counts is what tallies are to count of a workload, by change, and whether it holds a
// slot.
func (p *Plan) counts(r *record) (counts []count, slot bool) {
	of := func(c *change) *count {
		c = c.root()
		for i := range counts {
			if counts[i].change == c {
				return &counts[i]
			}
		}
		counts = append(counts, count{change: c})
		return &counts[len(counts)-1]
	}
	a, w := r.attempt, r.waits
	if a != nil {
		slot = r.rolls()
		for c, proves := range a.counts {
			n := of(c)
			n.attempts = 1
			switch {
			case a.failed() && proves:
				n.fails(a.began)
			case a.state == rolling, a.state == lapsed:
				n.begun(a.lacked)
			}
		}
		for c, was := range a.holds {
			n := of(c)
			n.attempts = 1
			n.fails(was.began)
		}
	}
	p.countDeclined(r, of)
	if m := r.missed; m != nil && m != a {
		for c := range m.counts {
			of(c).waiting = 1 // to be tried again
		}
	}
	if w == nil {
		return counts, slot
	}
	slot = slot || !w.granted.IsZero() && !w.mute
	waitsForOthers := !w.last && w.queue != nil
	for _, c := range w.on {
		waitsForOthers = waitsForOthers && !c.halts()
	}
	for _, c := range w.on {
		n := of(c)
		if n.waiting = 1; waitsForOthers {
			n.healthy = 1
		}
		if !w.granted.IsZero() && !w.mute {
			n.begun(w.last)
		}
	}
	return counts, slot
}

// begun notes a rollout that takes room in the step; of one that lacked replicas, in that of
// those alone.
func (n *count) begun(lacked bool) {
	if n.under = 1; lacked {
		n.lacking = 1
	}
}

// fails notes a failure; of several the oldest counts.
func (n *count) fails(began time.Time) {
	if !n.failed || began.Before(n.began) {
		n.failed, n.began = true, began
	}
}

// update changes a record, and what depends on it: its place in the queues, the
// tallies and the slots. This is the one way to change one.
func (p *Plan) update(r *record, now time.Time, do func()) {
	p.retract(r)
	do()
	p.contribute(r, now)
	p.requeue()
}

// retract takes a record out of the queues, tallies and slots.
func (p *Plan) retract(r *record) {
	if r.waits != nil {
		r.waits.leave()
	}
	for i := range r.counted {
		n := &r.counted[i]
		p.count(n.change, n.tally, -1)
		delete(n.change.members, r)
		if n.failed {
			delete(n.change.failures, r)
		}
		p.recheck(n.change)
	}
	r.counted = nil
	if r.slot {
		p.holdSlot(r, -1)
	}
}

// contribute is the opposite. A record that holds nothing worth keeping is dropped.
func (p *Plan) contribute(r *record, now time.Time) {
	if w := r.waits; w != nil {
		w.on = w.on[:0]
		for _, source := range w.sources {
			c := p.changes[SourceRef{r.ref.Namespace, source}].root()
			if !slices.Contains(w.on, c) {
				w.on = append(w.on, c)
			}
		}
		p.line(r, now)
	}
	counts, slot := p.counts(r)
	r.counted, r.slot = counts, slot
	for i := range counts {
		n := &counts[i]
		p.count(n.change, n.tally, 1)
		n.change.members[r] = struct{}{}
		if n.failed {
			n.change.failures[r] = n.began
		}
		p.recheck(n.change)
	}
	if slot {
		p.holdSlot(r, 1)
	}
	if r.idle(now) {
		delete(p.records, r.ref)
	} else {
		p.records[r.ref] = r
	}
	p.remind(r, now)
}

// count adds to the tally of a change, and of its groups.
func (p *Plan) count(c *change, n tally, sign int) {
	c.add(n, sign)
	for _, g := range c.groups {
		if g.add(n, sign); g.waiting+g.under == 0 {
			for stopped := range g.stopped {
				p.recheck(stopped) // no workload waits for it any more
			}
		}
	}
}

func (p *Plan) holdSlot(r *record, sign int) {
	p.under += sign
	if p.underIn[r.ref.Namespace] += sign; p.underIn[r.ref.Namespace] == 0 {
		delete(p.underIn, r.ref.Namespace)
	}
}

// of is the record of a workload, a new one when there is none.
func (p *Plan) of(ref workload.Ref) *record {
	r := p.records[ref]
	if r == nil {
		r = &record{ref: ref}
		p.records[ref] = r
	}
	return r
}

// Recount makes all tallies anew, as after a panic: should one be wrong, it is right
// again. It costs what all records cost.
func (p *Plan) Recount(now time.Time) {
	p.recounted, p.toRecheck = now, nil
	for _, c := range p.open {
		c.tally, c.members, c.failures, c.queues, c.toRecheck = tally{}, map[*record]struct{}{}, map[*record]time.Time{}, queues{}, false
		for _, g := range c.groups {
			g.tally = tally{}
		}
		p.recheck(c)
	}
	p.under, p.underIn = 0, map[string]int{}
	for _, r := range sortedRecords(maps.Values(p.records)) {
		if r.counted, r.slot = nil, false; r.waits != nil {
			r.waits.queue, r.waits.home = nil, nil
		}
		if p.contribute(r, now); r.waits != nil && !r.waits.granted.IsZero() {
			p.look(r.ref) // who had the turn may not know it
		}
	}
	p.requeue()
}
