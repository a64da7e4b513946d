package rollout

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Counts are the numbers of changes by state, of rollouts under way, and of workloads
// that a halt holds.
type Counts struct{ Rolling, Waiting, Halted, Unsettled, Held int }

// Counts counts.
func (p *Plan) Counts() (n Counts) {
	s := p.survey()
	n.Unsettled = s.unsettled
	changes := map[*change]bool{}
	for _, c := range p.waiting {
		held := false
		for _, change := range c.on {
			changes[change] = true
			held = held || change.halted != (workload.Ref{})
		}
		if held {
			n.Held++
		}
	}
	for c := range s.tally {
		changes[c] = true
	}
	for c := range changes {
		switch tally := s.tally[c]; {
		case c.halted != (workload.Ref{}):
			n.Halted++
		case tally != nil && tally.under > 0:
			n.Rolling++
		default:
			n.Waiting++
		}
	}
	return n
}

// survey is how things stand.
type survey struct {
	unsettled    int
	perNamespace map[string]int
	tally        map[*change]*tally
}

// tally is how a change stands: how many rollouts under way are to prove it, and
// which one halts it.
type tally struct {
	under int
	// waited tells that a healthy workload waits for nothing but others.
	waited     bool
	candidates int // how many wait
	proving    int // how many of those under way can halt it
	halt       workload.Ref
}

func (s *survey) of(c *change) *tally {
	if s.tally[c] == nil {
		s.tally[c] = &tally{}
	}
	return s.tally[c]
}

func (p *Plan) survey() *survey {
	s := &survey{perNamespace: map[string]int{}, tally: map[*change]*tally{}}
	for user, r := range p.rollouts {
		if !r.failed {
			s.unsettled++
			s.perNamespace[user.Namespace]++
		}
		for c, proves := range r.evidence {
			switch {
			case !r.failed:
				s.of(c.root()).under++
				if proves && p.waiting[user] == nil { // else it has been overtaken
					s.of(c.root()).proving++
				}
			case proves:
				p.stop(s, c.root(), user, r.began)
			}
		}
		for c, was := range r.holds {
			p.stop(s, c.root(), user, was.began)
		}
	}
	for _, c := range p.waiting {
		p.place(c)
		for _, change := range c.on {
			s.of(change).candidates++
		}
		if c.granted {
			p.count(s, c)
		}
	}
	return s
}

// stop has a rollout that began at some moment halt a change, unless it is forgiven.
// Of several it is always the same one, so that people are told once.
func (p *Plan) stop(s *survey, c *change, user workload.Ref, began time.Time) {
	if len(c.contents) == 0 || p.released(c, began) {
		return
	}
	known := s.of(c).halt
	if known == (workload.Ref{}) || user == c.halted || known != c.halted && (user.Name < known.Name || user.Name == known.Name && user.Kind.Resource < known.Kind.Resource) {
		s.of(c).halt = user
	}
}

// count takes a granted candidate for a rollout under way.
func (p *Plan) count(s *survey, c *waiter) {
	if p.needsSlot(c) {
		s.unsettled++
		s.perNamespace[c.user.Namespace]++
	}
	if !c.mute {
		for _, change := range c.on {
			s.of(change).under++
			if !c.last && !c.silent && !c.unready {
				s.of(change).proving++
			}
		}
	}
}

// needsSlot reports whether a rollout of a candidate is one more.
func (p *Plan) needsSlot(c *waiter) bool {
	r := p.rollouts[c.user]
	return !c.mute && (r == nil || r.failed)
}

// place finds out on which changes a candidate is.
func (p *Plan) place(c *waiter) {
	c.on = c.on[:0]
	for _, source := range c.sources {
		change := p.changes[SourceRef{Namespace: c.user.Namespace, Source: source}].root()
		if slices.Contains(c.on, change) {
			continue
		}
		if c.on = append(c.on, change); len(c.on) == 1 || change.born.Before(c.age) {
			c.age = change.born
		}
	}
}

// released reports whether a failure that began at some moment holds a change no
// more, because somebody said so on one of its sources.
func (p *Plan) released(c *change, began time.Time) bool {
	for at := range c.contents {
		if content := p.cluster.Content(at); content != nil && content.Policy.Resumes().After(began) {
			return true
		}
	}
	return false
}

// Orders are what has come of looking at everything.
type Orders struct {
	// Roll are those whose turn has come, and Held those who wait for a change that is
	// halted since now: look at all of them.
	Roll, Held []workload.Ref
	// Halted, Resumed and Finished are for people.
	Halted, Resumed, Finished []News
	// Again is when to ask again, zero: when something happens.
	Again time.Duration
}

// News is what has become of a change.
type News struct {
	Sources []SourceRef
	By      workload.Ref // who has failed with it
	Why     string
	Settled int // how many have rolled for it
}

// Next gives the turns that have come, and tells what has become of changes.
func (p *Plan) Next(now time.Time) Orders {
	var out Orders
	s := p.survey()
	p.judge(s, &out)
	if wait := p.opens.Sub(now); len(p.past) > 0 && wait > 0 {
		out.Again = wait
		return out
	}
	healthy, last := p.queues(s, now, &out)
	p.grant(healthy, s, &out)
	for _, namespace := range slices.Sorted(maps.Keys(last)) {
		for _, c := range last[namespace] {
			for _, change := range c.on {
				if s.of(change).proving > 0 || s.of(change).waited {
					c = nil // others first
					break
				}
			}
			if c != nil {
				p.grant(map[string][]*waiter{c.user.Namespace: {c}}, s, &out)
			}
		}
	}
	p.tidy(s, now, &out)
	return out
}

// judge says which changes are halted since now, and which go on.
func (p *Plan) judge(s *survey, out *Orders) {
	var held []*change
	for _, user := range slices.SortedFunc(maps.Keys(p.waiting), workload.Ref.Compare) {
		for _, change := range p.waiting[user].on {
			if halt := s.of(change).halt; halt != (workload.Ref{}) && change.halted != halt {
				if !slices.Contains(held, change) {
					held = append(held, change)
				}
				out.Held = append(out.Held, user)
			}
			if change.halted != (workload.Ref{}) && s.of(change).halt == (workload.Ref{}) {
				out.Resumed = append(out.Resumed, News{Sources: change.places(), By: change.halted})
				change.halted = workload.Ref{}
			}
		}
	}
	for _, change := range held {
		by := s.of(change).halt
		change.halted = by
		out.Halted = append(out.Halted, News{Sources: change.places(), By: by, Why: p.rollouts[by].why})
	}
}

// queues gives, for each namespace, the candidates who have to wait for others
// alone, in their order: those that are healthy, and those that go last.
func (p *Plan) queues(s *survey, now time.Time, out *Orders) (healthy, last map[string][]*waiter) {
	healthy, last = map[string][]*waiter{}, map[string][]*waiter{}
	again := func(wait time.Duration) {
		if out.Again == 0 || wait < out.Again {
			out.Again = wait
		}
	}
	for _, c := range p.waiting {
		open := !c.granted
		if wait := c.due.Sub(now); wait > 0 {
			again(wait)
			open = false
		}
		for _, change := range c.on {
			if wait := change.born.Add(openWithin).Sub(now); change.unseen > 0 && wait > 0 {
				again(wait)
				open = false
			}
			if c.busy && s.of(change).candidates+s.of(change).under > 1 {
				s.of(change).waited = true // those that are not healthy go after it
				open = false
			}
			// One that holds up others may always be mended.
			open = open && (s.of(change).halt == workload.Ref{} || c.last && p.holdsUp(c.user))
		}
		switch {
		case !open:
		case c.last:
			last[c.user.Namespace] = append(last[c.user.Namespace], c)
		default:
			healthy[c.user.Namespace] = append(healthy[c.user.Namespace], c)
		}
	}
	for _, queues := range []map[string][]*waiter{healthy, last} {
		for _, queue := range queues {
			slices.SortFunc(queue, p.compare)
		}
	}
	return healthy, last
}

// holdsUp reports whether a workload has failed for a change.
func (p *Plan) holdsUp(user workload.Ref) bool {
	r := p.rollouts[user]
	return r != nil && r.failed && (len(r.holds) > 0 || slices.Contains(slices.Collect(maps.Values(r.evidence)), true))
}

// compare orders the candidates of one namespace: by the age of the change, and
// within one as the design page says.
func (p *Plan) compare(a, b *waiter) int {
	if older := a.age.Compare(b.age); older != 0 {
		return older
	}
	if before := cmp.Or(cmp.Compare(a.tries, b.tries), cmp.Compare(a.order, b.order)); before != 0 {
		return before
	}
	if a.careful != b.careful {
		if b.careful {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.user.Name, b.user.Name), cmp.Compare(a.user.Kind.Resource, b.user.Kind.Resource))
}

// grant gives turns while there are slots and steps allow: to the namespace with
// the fewest rollouts under way first.
func (p *Plan) grant(queues map[string][]*waiter, s *survey, out *Orders) {
	namespaces := slices.Sorted(maps.Keys(queues))
	for len(namespaces) > 0 {
		slices.SortStableFunc(namespaces, func(a, b string) int { return cmp.Compare(s.perNamespace[a], s.perNamespace[b]) })
		namespace := namespaces[0]
		queue := queues[namespace]
		for len(queue) > 0 && !p.admits(queue[0], s) {
			queue = queue[1:] // what keeps it out stays so for now
		}
		if len(queue) == 0 {
			namespaces = namespaces[1:]
			continue
		}
		c := queue[0]
		queues[namespace] = queue[1:]
		c.granted = true
		p.count(s, c)
		out.Roll = append(out.Roll, c.user)
	}
}

// admits reports whether there is room for one more.
func (p *Plan) admits(c *waiter, s *survey) bool {
	room := !p.needsSlot(c) || s.unsettled < p.limits.Unsettled && s.perNamespace[c.user.Namespace] < p.limits.UnsettledPerNamespace
	for _, source := range c.sources {
		at := SourceRef{Namespace: c.user.Namespace, Source: source}
		change := p.changes[at].root()
		ended := change.proven[at]
		if c.last {
			ended = max(ended, change.settled) // of these nobody expects that they prove anything
		}
		room = room && p.othersUnder(c, change, s) < p.allowed(ended)-ended && (!c.silent || p.othersUnder(c, change, s) == 0)
	}
	if !room && !c.last {
		for _, change := range c.on {
			s.of(change).waited = true
		}
	}
	return room
}

// othersUnder is how many rollouts under way are to prove a change, that of a
// candidate aside.
func (p *Plan) othersUnder(c *waiter, change *change, s *survey) int {
	under := s.of(change).under
	if r := p.rollouts[c.user]; r != nil && !r.failed {
		if _, counts := r.evidence[change]; counts {
			under--
		}
	}
	return under
}

// allowed is how many workloads may have begun when some are proven: the first
// step, and twice as many more with each step that is complete.
func (p *Plan) allowed(proven int) int {
	complete := bits.Len(uint(proven/p.limits.Step+1)) - 1 // #nosec G115 -- neither is negative
	return p.limits.Step * (1<<(complete+1) - 1)
}

// tidy forgets changes for which nothing is left to do, and puts failures aside for
// which nobody waits.
func (p *Plan) tidy(s *survey, now time.Time, out *Orders) {
	awaited := map[*change]bool{}
	for _, c := range p.waiting {
		for _, change := range c.on {
			awaited[change] = true
		}
	}
	for user, r := range p.rollouts {
		if r.failed && !p.holds(r, awaited) && len(p.unseen[user]) == 0 {
			p.fall(user, r)
		}
	}
	for _, r := range p.rollouts {
		for c := range r.evidence {
			awaited[c.root()] = true
		}
		for c := range r.holds {
			awaited[c.root()] = true
		}
	}
	finished := map[*change]bool{}
	for _, at := range slices.SortedFunc(maps.Keys(p.changes), SourceRef.Compare) {
		root := p.changes[at].root()
		if awaited[root] || root.unseen > 0 && now.Sub(root.born) < openWithin {
			continue
		}
		delete(p.changes, at)
		p.remember(at, root, s.of(root).halt == workload.Ref{})
		if !finished[root] && root.settled > 1 && s.of(root).halt == (workload.Ref{}) {
			out.Finished = append(out.Finished, News{Sources: root.places(), Settled: root.settled})
		}
		finished[root] = true
	}
}

// mostEnded is how many changes that have ended are known of.
const mostEnded = 4096

// remember keeps how a change has ended, for those who come late: they have to look
// for themselves unless it ended well.
func (p *Plan) remember(at SourceRef, c *change, well bool) {
	if !well || c.proven[at] == 0 {
		delete(p.done, at)
		return
	}
	if len(p.done) >= mostEnded {
		clear(p.done) // they prove themselves again
	}
	p.done[at] = ended{c.contents[at], c.proven[at]}
}

// holds reports whether anybody waits for a rollout that has failed.
func (p *Plan) holds(r *attempt, awaited map[*change]bool) bool {
	for c, proves := range r.evidence {
		if proves && awaited[c.root()] {
			return true
		}
	}
	for c := range r.holds {
		if awaited[c.root()] {
			return true
		}
	}
	return false
}
