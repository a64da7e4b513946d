package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// opened is an open change: a source holds content that somebody does not carry yet, or has
// not shown how it does with. How many are in each state is counted anew in each cycle.
type opened struct {
	at      SourceRef
	number  uint64 // of all that were opened: a look that began later knows its content
	content checksum.Fingerprint
	born    time.Time
	parts   []*part // of all that use the source
	// found tells that it was there before us, or had ended: who carries the content may have
	// taken it by this change.
	found bool
	// key is what copies have in common; zero: it has none. full is the hash of all that it holds.
	key  groupKey
	full uint64
	// before is how many have proven the content, as was known when it was opened.
	before int
	taken  int       // how many took the content
	closed bool      // nothing is left to do
	proved time.Time // when a workload was last found well with the content

	// What halts it, as people were told: the workload, and whether other namespaces do.
	halted  workload.Ref
	foreign bool
	// again is the workload that took the content when the source held it before, and nothing has proven it.
	again workload.Ref
	// waitingSince is since when somebody could roll, were it its turn; turn when somebody last had one.
	waitingSince, turn time.Time

	copies *copies // with itself
	round
	reported reported // as of Orders.Changed
}

// round is what is counted of a change in each cycle.
type round struct {
	counted
	failed time.Time // when that happened which halts other namespaces
	stop   *part     // that halts it
	queue  []*part
	sorted bool
	// joining are those of the queue that need no slot, mending those that carry over.
	joining, mending int
	first            int       // the least order of those that wait and lack nothing
	tried            int       // how many of queue do not fit in this cycle
	readBy           time.Time // until when it waits for workloads that are to be read
	ahead            int       // workloads with content that the watch has not delivered yet
}

// copies are the open changes of a replicated ConfigMap, which roll in common steps. A change
// that has none is alone.
type copies struct {
	counted
	changes []*opened
	failing []*opened // those of which somebody has failed since one was last proven
	proved  time.Time
	turn    time.Time // when one of them last had one
}

// counted is how many workloads of a change are in each state.
type counted struct {
	unseen, waiting, trials, standing, proven, failures int
	carried                                             int // open with older content
	held                                                int // by a setting, but for mode observe, or as something is missing
	untold, broken                                      int // broken: was down, and has failed with content that others have proven
	fallen                                              int // of trials, those that had proven it before
	lackTrials, lackProven, lackCarried                 int // of trials, proven and carried, those that lacked replicas
}

func (n *counted) add(other *counted) {
	n.unseen += other.unseen
	n.waiting += other.waiting
	n.trials += other.trials
	n.standing += other.standing
	n.proven += other.proven
	n.failures += other.failures
	n.carried += other.carried
	n.held += other.held
	n.untold += other.untold
	n.broken += other.broken
	n.fallen += other.fallen
	n.lackTrials += other.lackTrials
	n.lackProven += other.lackProven
	n.lackCarried += other.lackCarried
}

// concerns returns how many workloads a content concerns, including held ones: they roll later.
func (n *counted) concerns() int {
	return n.unseen + n.waiting + n.trials + n.standing + n.proven + n.failures + n.carried + n.held + n.untold + n.broken
}

// settled is how many took a content and hold no room any more.
func (n *counted) settled() int { return n.proven + n.untold }

// all is what is counted of a change, with its copies.
func (c *opened) all() *counted { return &c.copies.counted }

// copied reports whether there may be copies of it.
func (c *opened) copied() bool { return c.key != groupKey{} }

// countAll counts everything anew: the states of each change, the slots that are taken, and
// who waits in which queue.
func (p *Planner) countAll(now time.Time) {
	p.under, p.underIn = 0, map[string]int{}
	p.sum(now)
	for _, t := range p.all {
		if t.rolls(&p.limits, now) {
			if p.underIn[t.ref.Namespace]++; p.underIn[t.ref.Namespace] <= p.slotsIn {
				p.under++
			}
		}
	}
	for _, c := range p.open {
		c.round = round{counted: counted{proven: c.before}, queue: c.queue[:0], first: nobody}
		for _, its := range c.parts {
			c.count(its, &p.limits, now)
		}
	}
	p.group()
	for _, c := range p.open {
		p.stops(c, now)
		for _, its := range c.parts {
			its.track.stopped = its.track.stopped || c.halts() && its.waits() == Waiting
		}
	}
	for _, c := range p.open {
		for _, its := range c.queue {
			if t := its.track; t.class < lacking && !t.stopped {
				c.first = min(c.first, t.order())
			}
		}
	}
}

// sum finds out what the parts of each workload say together.
func (p *Planner) sum(now time.Time) {
	for _, t := range p.all {
		t.sums = sums{late: !t.since.IsZero() && now.Sub(t.since) >= longestTrial*p.limits.RolloutDeadline}
		for _, its := range t.parts {
			over, c := its.over(), its.change
			t.mends = t.mends || over
			t.blocked = t.blocked || !over && (c.foreign || c.halted != workload.Ref{}) && its.waits() == Waiting
		}
	}
}

// count counts one workload.
func (c *opened) count(its *part, limits *Limits, now time.Time) {
	n, t := &c.counted, its.track
	state, over := its.state()
	waits, ahead := state == Waiting || over && its.waits() == Waiting, its.isAhead(limits, now)
	c.ahead += one(ahead)
	switch {
	case waits && t.turn != nil && !t.turn.mute:
		n.tries(t.turn.lacked)
	case ahead:
		n.tries(false)
	case over && its.mayTake():
		n.carried++
		n.lackCarried += one(its.lacked)
	}
	if waits {
		if !over && its.maybeDown(now) {
			c.reads(c.born, now)
		}
		if n.waiting++; t.turn == nil && !t.uncertain && !t.due.After(now) && !t.retry.After(now) {
			c.queue = append(c.queue, its)
			c.joining += one(!t.needsSlot(limits, now))
			c.mending += one(over)
		}
	}
	if over {
		return
	}
	switch state {
	case Unseen:
		c.reads(its.asked, now)
	case OnTrial:
		n.tries(its.lacked)
		n.fallen += one(its.fallen > 0)
	case Standing:
		n.standing++
	case Proven:
		n.proven++
		n.lackProven += one(its.lacked)
	case Held:
		n.held += one(t.hold != reason.ObserveMode)
	case Untold:
		n.untold++
	case Current, Waiting, Failed:
	}
}

// reads counts a workload that has had to be read since some moment, for a minute at most.
func (c *opened) reads(since, now time.Time) {
	if until := since.Add(openWithin); until.After(now) {
		c.unseen++
		c.readBy = latest(c.readBy, until)
	}
}

// tries counts one that takes room in the step; of one that lacked replicas, in that of those
// alone.
func (n *counted) tries(lacked bool) {
	n.trials++
	n.lackTrials += one(lacked)
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// group has copies of a replicated ConfigMap counted together.
func (p *Planner) group() {
	groups := map[groupKey]*copies{}
	for _, c := range p.open {
		its := &copies{}
		if c.copied() {
			its = c.among(groups)
		}
		c.copies = its
		its.add(&c.counted)
		its.changes, its.proved, its.turn = append(its.changes, c), latest(its.proved, c.proved), latest(its.turn, c.turn)
	}
}

// among is that of some groups which a copy belongs to, or a new one. Of copies that were found nobody
// knows what they held before.
func (c *opened) among(groups map[groupKey]*copies) *copies {
	its, found, full := groups[c.key], groupKey{c.key.name, 0, c.key.is}, groupKey{c.key.name, 0, c.full}
	for _, key := range []groupKey{found, full} {
		if other := groups[key]; its == nil && other != nil && (c.found || other.changes[0].found) {
			its = other
		}
	}
	if its == nil {
		its = &copies{}
		groups[found] = its
		if c.found {
			groups[full] = its
		}
	}
	groups[c.key] = its
	return its
}

// stops finds out what halts a change: who has failed with its content, and nobody has said since
// that it is to go on. Of several it is always the same one, so that people are told once. What
// somebody has resumed halts other namespaces all the same.
func (p *Planner) stops(c *opened, now time.Time) {
	for _, its := range c.parts {
		state, over := its.state()
		switch proven := c.all().proven > 0; {
		case state != Failed || over:
			continue
		case proven && its.down && !its.declined: // its fault is its own
			c.broken++
			c.copies.broken++
			continue
		case !its.declined:
			its.began = p.firstTook(c, its)
		}
		if its.began.After(c.copies.proved) && (c.failed.IsZero() || its.began.Before(c.failed)) {
			c.failed = its.began // who fails again and again makes no foreign halt longer
		}
		if its.resumed = its.resumed || p.resumed(c.at, its.began); its.resumed {
			continue
		}
		c.failures++
		if ref := its.track.ref; c.stop == nil || ref == c.halted || c.stop.track.ref != c.halted && ref.Compare(c.stop.track.ref) < 0 {
			c.stop = its
		}
	}
	if c.stop != nil && c.all().proven == 0 && !c.stop.declined {
		p.remembers(c.stop, c.content, now)
	}
	if c.copies.failures += c.failures; !c.failed.IsZero() {
		c.copies.failing = append(c.copies.failing, c)
	}
}

// resumed reports whether somebody said on a source that what began at some moment halts it no
// more.
func (p *Planner) resumed(at SourceRef, began time.Time) bool {
	content := p.cluster.Content(at)
	return content != nil && content.Policy.Resumes().After(began)
}

// halts reports whether a change gives no turns, but to those that carry over, as somebody has failed
// with its content.
func (c *opened) halts() bool { return c.stop != nil || c.foreign }

// latest is the later of two moments.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sortedTracks are some tracks in the order of their workloads.
func (p *Planner) sortedTracks(which func(*track) bool) (sorted []*track) {
	for _, t := range p.all {
		if which(t) {
			sorted = append(sorted, t)
		}
	}
	slices.SortFunc(sorted, func(a, b *track) int { return a.ref.Compare(b.ref) })
	return sorted
}
