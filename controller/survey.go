package controller

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"
)

// counts are the numbers of changes by state, of rollouts under way, and of
// workloads that a halt holds.
type counts struct{ rolling, waiting, halted, unsettled, held int }

func (t *steps) counts() (n counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.survey()
	n.unsettled = s.unsettled
	changes := map[*change]bool{}
	for _, c := range t.waiting {
		held := false
		for _, change := range c.on {
			changes[change] = true
			held = held || change.halted != (ref{})
		}
		if held {
			n.held++
		}
	}
	for c := range s.standings {
		changes[c] = true
	}
	for c := range changes {
		switch standing := s.standings[c]; {
		case c.halted != (ref{}):
			n.halted++
		case standing != nil && standing.under > 0:
			n.rolling++
		default:
			n.waiting++
		}
	}
	return n
}

// survey is how things stand.
type survey struct {
	unsettled    int
	perNamespace map[string]int
	standings    map[*change]*standing
}

// standing is how a change stands: how many rollouts under way are to prove it, and
// which one halts it.
type standing struct {
	under int
	// waited tells that a healthy workload waits for nothing but others.
	waited     bool
	candidates int // how many wait
	proving    int // how many of those under way can halt it
	halt       ref
}

func (s *survey) of(c *change) *standing {
	if s.standings[c] == nil {
		s.standings[c] = &standing{}
	}
	return s.standings[c]
}

func (t *steps) survey() *survey {
	s := &survey{perNamespace: map[string]int{}, standings: map[*change]*standing{}}
	for user, r := range t.rollouts {
		if !r.failed {
			s.unsettled++
			s.perNamespace[user.namespace]++
		}
		for c, proves := range r.evidence {
			switch {
			case !r.failed:
				s.of(c.root()).under++
				if proves && t.waiting[user] == nil { // else it has been overtaken
					s.of(c.root()).proving++
				}
			case proves:
				t.stop(s, c.root(), user, r.began)
			}
		}
		for c, was := range r.holds {
			t.stop(s, c.root(), user, was.began)
		}
	}
	for _, c := range t.waiting {
		t.place(c)
		for _, change := range c.on {
			s.of(change).candidates++
		}
		if c.granted {
			t.count(s, c)
		}
	}
	return s
}

// stop has a rollout that began at some moment halt a change, unless it is forgiven.
// Of several it is always the same one, so that people are told once.
func (t *steps) stop(s *survey, c *change, user ref, began time.Time) {
	if len(c.contents) == 0 || t.released(c, began) {
		return
	}
	known := s.of(c).halt
	if known == (ref{}) || user == c.halted || known != c.halted && (user.name < known.name || user.name == known.name && user.kind.Resource < known.kind.Resource) {
		s.of(c).halt = user
	}
}

// count takes a granted candidate for a rollout under way.
func (t *steps) count(s *survey, c *candidate) {
	if t.needsSlot(c) {
		s.unsettled++
		s.perNamespace[c.user.namespace]++
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
func (t *steps) needsSlot(c *candidate) bool {
	r := t.rollouts[c.user]
	return !c.mute && (r == nil || r.failed)
}

// place finds out on which changes a candidate is.
func (t *steps) place(c *candidate) {
	c.on = c.on[:0]
	for _, source := range c.sources {
		change := t.changes[place{c.user.namespace, source}].root()
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
func (t *steps) released(c *change, began time.Time) bool {
	for at := range c.contents {
		if t.resumed(at).After(began) {
			return true
		}
	}
	return false
}

// outcome is what has come of looking at everything.
type outcome struct {
	granted []ref
	// held are those who wait for a change that is halted since now.
	held            []ref
	halted, resumed []news
	finished        []news
	// again is when to look again, zero: when something happens.
	again time.Duration
}

// news is what has become of a change.
type news struct {
	places  []place
	by      ref
	why     string
	settled int
}

// next gives the turns that have come.
func (t *steps) next(now time.Time) outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out outcome
	s := t.survey()
	t.judge(s, &out)
	if wait := t.opens.Sub(now); len(t.past) > 0 && wait > 0 {
		out.again = wait
		return out
	}
	healthy, last := t.queues(s, now, &out)
	t.grant(healthy, s, &out)
	for _, namespace := range slices.Sorted(maps.Keys(last)) {
		for _, c := range last[namespace] {
			for _, change := range c.on {
				if s.of(change).proving > 0 || s.of(change).waited {
					c = nil // others first
					break
				}
			}
			if c != nil {
				t.grant(map[string][]*candidate{c.user.namespace: {c}}, s, &out)
			}
		}
	}
	t.tidy(s, now, &out)
	return out
}

// judge says which changes are halted since now, and which go on.
func (t *steps) judge(s *survey, out *outcome) {
	var held []*change
	for _, user := range slices.SortedFunc(maps.Keys(t.waiting), ref.compare) {
		for _, change := range t.waiting[user].on {
			if halt := s.of(change).halt; halt != (ref{}) && change.halted != halt {
				if !slices.Contains(held, change) {
					held = append(held, change)
				}
				out.held = append(out.held, user)
			}
			if change.halted != (ref{}) && s.of(change).halt == (ref{}) {
				out.resumed = append(out.resumed, news{places: change.places(), by: change.halted})
				change.halted = ref{}
			}
		}
	}
	for _, change := range held {
		by := s.of(change).halt
		change.halted = by
		out.halted = append(out.halted, news{places: change.places(), by: by, why: t.rollouts[by].why})
	}
}

// queues gives, for each namespace, the candidates who have to wait for others
// alone, in their order: those that are healthy, and those that go last.
func (t *steps) queues(s *survey, now time.Time, out *outcome) (healthy, last map[string][]*candidate) {
	healthy, last = map[string][]*candidate{}, map[string][]*candidate{}
	again := func(wait time.Duration) {
		if out.again == 0 || wait < out.again {
			out.again = wait
		}
	}
	for _, c := range t.waiting {
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
			open = open && (s.of(change).halt == ref{} || c.last && t.holdsUp(c.user))
		}
		switch {
		case !open:
		case c.last:
			last[c.user.namespace] = append(last[c.user.namespace], c)
		default:
			healthy[c.user.namespace] = append(healthy[c.user.namespace], c)
		}
	}
	for _, queues := range []map[string][]*candidate{healthy, last} {
		for _, queue := range queues {
			slices.SortFunc(queue, t.compare)
		}
	}
	return healthy, last
}

// holdsUp reports whether a workload has failed for a change.
func (t *steps) holdsUp(user ref) bool {
	r := t.rollouts[user]
	return r != nil && r.failed && (len(r.holds) > 0 || slices.Contains(slices.Collect(maps.Values(r.evidence)), true))
}

// compare orders the candidates of one namespace: by the age of the change, and
// within one as the design page says.
func (t *steps) compare(a, b *candidate) int {
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
	return cmp.Or(cmp.Compare(a.user.name, b.user.name), cmp.Compare(a.user.kind.Resource, b.user.kind.Resource))
}

// grant gives turns while there are slots and steps allow: to the namespace with
// the fewest rollouts under way first.
func (t *steps) grant(queues map[string][]*candidate, s *survey, out *outcome) {
	namespaces := slices.Sorted(maps.Keys(queues))
	for len(namespaces) > 0 {
		slices.SortStableFunc(namespaces, func(a, b string) int { return cmp.Compare(s.perNamespace[a], s.perNamespace[b]) })
		namespace := namespaces[0]
		queue := queues[namespace]
		for len(queue) > 0 && !t.admits(queue[0], s) {
			queue = queue[1:] // what keeps it out stays so for now
		}
		if len(queue) == 0 {
			namespaces = namespaces[1:]
			continue
		}
		c := queue[0]
		queues[namespace] = queue[1:]
		c.granted = true
		t.count(s, c)
		out.granted = append(out.granted, c.user)
	}
}

// admits reports whether there is room for one more.
func (t *steps) admits(c *candidate, s *survey) bool {
	room := !t.needsSlot(c) || s.unsettled < t.limits.Unsettled && s.perNamespace[c.user.namespace] < t.limits.UnsettledPerNamespace
	for _, source := range c.sources {
		at := place{c.user.namespace, source}
		change := t.changes[at].root()
		ended := change.proven[at]
		if c.last {
			ended = max(ended, change.settled) // of these nobody expects that they prove anything
		}
		room = room && t.othersUnder(c, change, s) < t.allowed(ended)-ended && (!c.silent || t.othersUnder(c, change, s) == 0)
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
func (t *steps) othersUnder(c *candidate, change *change, s *survey) int {
	under := s.of(change).under
	if r := t.rollouts[c.user]; r != nil && !r.failed {
		if _, counts := r.evidence[change]; counts {
			under--
		}
	}
	return under
}

// allowed is how many workloads may have begun when some are proven: the first
// step, and twice as many more with each step that is complete.
func (t *steps) allowed(proven int) int {
	complete := bits.Len(uint(proven/t.limits.Step+1)) - 1 // #nosec G115 -- neither is negative
	return t.limits.Step * (1<<(complete+1) - 1)
}

// tidy forgets changes for which nothing is left to do, and puts failures aside for
// which nobody waits.
func (t *steps) tidy(s *survey, now time.Time, out *outcome) {
	awaited := map[*change]bool{}
	for _, c := range t.waiting {
		for _, change := range c.on {
			awaited[change] = true
		}
	}
	for user, r := range t.rollouts {
		if r.failed && !t.holds(r, awaited) && len(t.unseen[user]) == 0 {
			t.fall(user, r)
		}
	}
	for _, r := range t.rollouts {
		for c := range r.evidence {
			awaited[c.root()] = true
		}
		for c := range r.holds {
			awaited[c.root()] = true
		}
	}
	finished := map[*change]bool{}
	for _, at := range slices.SortedFunc(maps.Keys(t.changes), place.compare) {
		root := t.changes[at].root()
		if awaited[root] || root.unseen > 0 && now.Sub(root.born) < openWithin {
			continue
		}
		delete(t.changes, at)
		t.remember(at, root, s.of(root).halt == ref{})
		if !finished[root] && root.settled > 1 && s.of(root).halt == (ref{}) {
			out.finished = append(out.finished, news{places: root.places(), settled: root.settled})
		}
		finished[root] = true
	}
}

// mostEnded is how many changes that have ended are known of.
const mostEnded = 4096

// remember keeps how a change has ended, for those who come late: they have to look
// for themselves unless it ended well.
func (t *steps) remember(at place, c *change, well bool) {
	if !well || c.proven[at] == 0 {
		delete(t.done, at)
		return
	}
	if len(t.done) >= mostEnded {
		clear(t.done) // they prove themselves again
	}
	t.done[at] = ended{c.contents[at], c.proven[at]}
}

// holds reports whether anybody waits for a rollout that has failed.
func (t *steps) holds(r *rollout, awaited map[*change]bool) bool {
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
