package controller

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// steps decides whose turn it is. A change rolls one workload first, twice as
// many each time they have become healthy, and stops when one fails; all changes
// together keep within a budget of rollouts that are not settled.
//
// It knows no client and no clock. What it knows of the cluster it is told, and is
// told again by a process that begins to lead: see find in health.go.
type steps struct {
	limits Limits
	// users gives the workloads that a source concerns, content what it holds.
	users   func(place) []ref
	content func(place) *checksum.Content
	// resumed is what configstamp.dev/resume says on a source, zero when nothing.
	resumed func(place) time.Time
	// look has a workload looked at, call has next called after a moment.
	look func(ref)
	call func(time.Duration)

	mu       sync.Mutex
	changes  map[place]*change
	waiting  map[ref]*candidate
	rollouts map[ref]*rollout
	missed   map[ref]*rollout  // asked for, and it is not known whether they came
	unseen   map[ref][]*change // what waits for a workload to be looked at
	// past are the workloads whose rollouts of the past are not known yet: nothing
	// rolls before they are, or opens.
	past  map[ref]struct{}
	opens time.Time
}

// Limits bound how much rolls at once.
type Limits struct {
	// Step is how many workloads a change rolls first; 0: all at once, and nothing
	// of what follows counts.
	Step int
	// Unsettled is how many rollouts may be under way at once, in the cluster and in
	// each namespace.
	Unsettled, UnsettledPerNamespace int
	// Soak is how long a rollout has to stay well before it is healthy.
	Soak time.Duration
	// CrashDeadline is how long every new pod has to crash, or to be unable to
	// start, before a rollout has failed.
	CrashDeadline time.Duration
	// RolloutDeadline is how long a rollout may make no progress, where its own
	// controller has no deadline.
	RolloutDeadline time.Duration
}

// change is one source going from one content to another, or several that settled
// together and concern common workloads.
type change struct {
	born     time.Time
	contents map[place]*checksum.Content // of its sources; none: they have changed again
	into     *change                     // which has taken it in, nil: none
	// found tells that it began before we looked, so that workloads may have rolled
	// for it already.
	found bool
	// unseen is how many workloads have to be looked at before it begins, so that
	// the first is the right one.
	unseen int
	// proven is how many became healthy with each source, settled how many rolled.
	proven  map[place]int
	settled int
	halted  ref // by whom; the zero ref: by nobody
}

func (c *change) root() *change {
	for c.into != nil {
		c = c.into
	}
	return c
}

// begun reports whether anything has rolled for it.
func (c *change) begun() bool { return c.settled > 0 }

func (c *change) places() []place { return slices.Collect(maps.Keys(c.contents)) }

// candidate is a workload that would roll, but for its turn.
type candidate struct {
	user    ref
	sources []checksum.Source
	records checksum.Records
	since   time.Time
	// due is when its sources have settled.
	due time.Time
	// last tells that it is not healthy: it goes last, and halts nothing.
	last bool
	// mute tells that it cannot report health: it is settled at once.
	mute bool
	// order is its place, careful that others are to go before it.
	order   int
	careful bool
	tries   int

	granted bool
	// on are its changes, and age when the oldest was born: as of the last survey.
	on  []*change
	age time.Time
}

// unordered is the order of those that have none: they go after the others.
const unordered = math.MaxInt

// rollout is a workload that rolls, or has failed.
type rollout struct {
	began time.Time
	// evidence is for which changes it counts, and whether it can halt them.
	evidence map[*change]bool
	places   []place  // of the sources for which it rolls
	found    bool     // it was not begun by us
	before   *rollout // the one in whose place it stands, nil: none
	tries    int
	failed   bool
	why      string
	health   health
}

func newSteps(limits Limits) *steps {
	return &steps{
		limits: limits, changes: map[place]*change{}, waiting: map[ref]*candidate{}, rollouts: map[ref]*rollout{},
		missed: map[ref]*rollout{}, unseen: map[ref][]*change{},
	}
}

// off reports whether everything rolls at once.
func (t *steps) off() bool { return t.limits.Step == 0 }

// openWithin bounds how long a change waits for workloads that cannot be looked at.
const openWithin = time.Minute

// lead notes that this process leads from now on.
func (t *steps) lead(users []ref, now time.Time) {
	if t.off() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past, t.opens = make(map[ref]struct{}, len(users)), now.Add(openWithin)
	for _, user := range users {
		t.past[user] = struct{}{}
	}
	t.stir()
}

// stir has the turns looked at: at once, unless so many wait that it takes a while.
func (t *steps) stir() {
	const many, together = 64, 20 * time.Millisecond
	if len(t.waiting) < many {
		t.call(0)
	} else {
		t.call(together)
	}
}

// isPast reports whether it is not known whether a workload rolls already.
func (t *steps) isPast(user ref) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, past := t.past[user]
	return past
}

// changed notes that a source has another content, or says something else.
func (t *steps) changed(at place, content *checksum.Content, users []ref, now time.Time) {
	if t.off() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.stir()
	if known := t.changes[at]; known != nil {
		known = known.root()
		if known.contents[at].SameEntries(content) {
			return
		}
		delete(known.contents, at)
	}
	t.begin(at, &change{born: now, contents: map[place]*checksum.Content{at: content}}, users)
}

func (t *steps) begin(at place, c *change, users []ref) {
	t.changes[at] = c
	c.unseen = len(users)
	c.proven = map[place]int{}
	for _, user := range users {
		t.unseen[user] = append(t.unseen[user], c)
	}
}

// unproven gives the sources whose changes wait for a workload to be looked at;
// true for those that were found: they want to know of past rollouts as well.
func (t *steps) unproven(user ref) map[place]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var open map[place]bool
	for _, c := range t.unseen[user] {
		for at := range c.root().contents {
			if open == nil {
				open = map[place]bool{}
			}
			open[at] = c.root().found
		}
	}
	return open
}

// seen notes that a workload was looked at.
func (t *steps) seen(user ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(user)
}

func (t *steps) see(user ref) {
	for _, c := range t.unseen[user] {
		c = c.root()
		if c.unseen--; c.unseen == 0 {
			t.stir()
		}
	}
	delete(t.unseen, user)
	if _, past := t.past[user]; past {
		if delete(t.past, user); len(t.past) == 0 {
			t.past = nil
			t.stir()
		}
	}
}

// turn is what a candidate is told.
type turn struct {
	granted bool
	since   time.Time // since when it waits
	// halted is by whom its change is halted, and why.
	halted ref
	why    string
}

// wait has a workload wait for its turn, or tells that it has come.
func (t *steps) wait(c candidate, now time.Time) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.waiting[c.user]
	c.since = now
	if known != nil {
		c.since, c.tries, c.granted = known.since, known.tries, known.granted && !c.due.After(now)
		if !slices.Equal(known.sources, c.sources) {
			c.granted = false // it was for something else
		}
	}
	if missed := t.missed[c.user]; missed != nil { // it did not come
		c.tries = missed.tries + 1
		delete(t.missed, c.user)
		t.undo(c.user, missed)
	}
	t.waiting[c.user] = &c
	t.join(&c, now)
	if known == nil || known.due != c.due || known.last != c.last || !slices.Equal(known.sources, c.sources) {
		t.stir()
	}
	answer := turn{granted: c.granted, since: c.since}
	for _, source := range c.sources {
		if change := t.changes[place{c.user.namespace, source}].root(); change.halted != (ref{}) {
			answer.halted = change.halted
			if r := t.rollouts[change.halted]; r != nil {
				answer.why = r.why
			}
		}
	}
	return answer
}

// undo puts back what was known before a rollout that did not come.
func (t *steps) undo(user ref, r *rollout) {
	switch {
	case t.rollouts[user] != r:
	case r.before != nil:
		t.rollouts[user] = r.before
	default:
		delete(t.rollouts, user)
	}
}

// join makes one change of what concerns a candidate and has settled together.
func (t *steps) join(c *candidate, now time.Time) {
	var first *change
	for _, source := range c.sources {
		at := place{c.user.namespace, source}
		if t.changes[at] == nil {
			users := t.users(at)
			t.begin(at, &change{born: now, found: true, contents: map[place]*checksum.Content{at: t.content(at)}}, users)
			for _, user := range users {
				t.look(user)
			}
		}
		other := t.changes[at].root()
		switch {
		case first == nil:
			first = other
		case first != other && !first.begun() && !other.begun() && first.found == other.found && !t.rolls(first) && !t.rolls(other):
			first.unseen += other.unseen
			maps.Copy(first.contents, other.contents)
			maps.Copy(first.proven, other.proven)
			other.into = first
		}
	}
}

// rolls reports whether anything rolls for a change now.
func (t *steps) rolls(c *change) bool {
	for _, r := range t.rollouts {
		for other := range r.evidence {
			if other.root() == c {
				return true
			}
		}
	}
	return false
}

// withdraw notes that a workload does not wait any more.
func (t *steps) withdraw(user ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[user] != nil {
		delete(t.waiting, user)
		t.stir()
	}
}

// take begins the rollout of a workload whose turn has come.
func (t *steps) take(user ref, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[user]
	if c == nil {
		return
	}
	delete(t.waiting, user)
	r := &rollout{began: now, evidence: map[*change]bool{}, before: t.rollouts[user], tries: c.tries}
	if r.before != nil {
		maps.Copy(r.evidence, r.before.evidence) // what it has failed is open until it is well
		r.before.before = nil
	}
	for _, source := range c.sources {
		at := place{user.namespace, source}
		change := t.changes[at].root()
		r.evidence[change] = !c.last && !c.mute || r.evidence[change]
		r.places = append(r.places, at)
	}
	t.rollouts[user] = r
}

// fail notes that what was taken did not come, or, unless that is certain, that
// nobody knows.
func (t *steps) fail(user ref, certain bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	if r == nil {
		return
	}
	t.missed[user] = r
	if certain {
		t.undo(user, r)
	}
	t.stir()
}

// uncertain reports whether it is not known if what was taken has come.
func (t *steps) uncertain(user ref) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.missed[user]
	return r != nil && t.rollouts[user] == r
}

// came notes that what was taken has come, so far as it was not known.
func (t *steps) came(user ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.missed, user)
}

// of is the rollout of a workload, nil when it has none. What it knows of health is
// for the one who looks at the workload.
func (t *steps) of(user ref) *rollout {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rollouts[user]
}

// board has a rollout followed that others have begun, or who led before, and lets
// it count for some changes, or not. One that is followed already counts for
// more.
func (t *steps) board(user ref, began time.Time, places []place, proves bool) *rollout {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	if r == nil {
		r = &rollout{began: began, found: true, evidence: map[*change]bool{}}
		t.rollouts[user] = r
	}
	for _, at := range places {
		if c := t.changes[at]; c != nil {
			r.evidence[c.root()] = proves || r.evidence[c.root()]
			r.places = append(r.places, at)
		}
	}
	t.stir()
	return r
}

// settle ends a rollout: it is healthy, or cannot tell.
func (t *steps) settle(user ref, healthy bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	if r == nil {
		return
	}
	delete(t.rollouts, user)
	for c := range r.evidence {
		c.root().settled++
	}
	for _, at := range r.places {
		if c := t.changes[at]; healthy && c != nil {
			if _, counts := r.evidence[c.root()]; counts {
				c.root().proven[at]++
			}
		}
	}
	t.stir()
}

// halt notes that a rollout has failed. It reports whether anybody waits for
// it: else it need not be followed any more.
func (t *steps) halt(user ref, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.rollouts[user]; r != nil {
		r.failed, r.why = true, why
		t.stir()
	}
}

// forget drops a workload.
func (t *steps) forget(user ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(user)
	if t.waiting[user] == nil && t.rollouts[user] == nil && t.missed[user] == nil {
		return
	}
	delete(t.waiting, user)
	delete(t.rollouts, user)
	delete(t.missed, user)
	t.stir()
}

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
	waited bool
	halt   ref
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
			c = c.root()
			switch {
			case len(c.contents) == 0 || !proves:
			case !r.failed:
				s.of(c).under++
			case !t.released(c, r.began):
				if known := s.of(c).halt; known == (ref{}) || user == c.halted || known != c.halted && t.rollouts[known].began.After(r.began) {
					s.of(c).halt = user
				}
			}
		}
	}
	for _, c := range t.waiting {
		if t.place(c); c.granted {
			t.count(s, c)
		}
	}
	return s
}

// count takes a granted candidate for a rollout under way.
func (t *steps) count(s *survey, c *candidate) {
	if t.needsSlot(c) {
		s.unsettled++
		s.perNamespace[c.user.namespace]++
	}
	if c.last || c.mute {
		return
	}
	for _, change := range c.on {
		s.of(change).under++
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
	for _, queue := range last {
		for _, c := range queue {
			for _, change := range c.on {
				if t.othersUnder(c, change, s) > 0 || s.of(change).waited {
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
	held := map[*change]bool{}
	for user, c := range t.waiting {
		for _, change := range c.on {
			if halt := s.of(change).halt; halt != (ref{}) && change.halted != halt {
				held[change] = true
				out.held = append(out.held, user)
			}
			if change.halted != (ref{}) && s.of(change).halt == (ref{}) {
				out.resumed = append(out.resumed, news{places: change.places(), by: change.halted})
				change.halted = ref{}
			}
		}
	}
	for change := range held {
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
	return r != nil && r.failed && slices.Contains(slices.Collect(maps.Values(r.evidence)), true)
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
	if !c.last {
		for _, source := range c.sources {
			at := place{c.user.namespace, source}
			change := t.changes[at].root()
			room = room && t.othersUnder(c, change, s) < t.allowed(change.proven[at])-change.proven[at]
		}
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
	if r := t.rollouts[c.user]; r != nil && !r.failed && r.evidence[change] {
		under--
	}
	return under
}

// allowed is how many workloads may have begun when some are proven: the first
// step, and twice as many more with each step that is complete.
func (t *steps) allowed(proven int) int {
	complete := bits.Len(uint(proven/t.limits.Step+1)) - 1 // #nosec G115 -- neither is negative
	return t.limits.Step * (1<<(complete+1) - 1)
}

// tidy forgets changes for which nothing is left to do, and failures for which
// nobody waits: who waits later finds them.
func (t *steps) tidy(s *survey, now time.Time, out *outcome) {
	awaited := map[*change]bool{}
	for _, c := range t.waiting {
		for _, change := range c.on {
			awaited[change] = true
		}
	}
	for user, r := range t.rollouts {
		if r.failed && !t.holds(r, awaited) {
			delete(t.rollouts, user)
		}
	}
	for _, r := range t.rollouts {
		for c := range r.evidence {
			awaited[c.root()] = true
		}
	}
	finished := map[*change]bool{}
	for at, c := range t.changes {
		root := c.root()
		if awaited[root] || root.unseen > 0 && now.Sub(root.born) < openWithin {
			continue
		}
		delete(t.changes, at)
		if !finished[root] && root.settled > 1 && s.of(root).halt == (ref{}) {
			out.finished = append(out.finished, news{places: root.places(), settled: root.settled})
		}
		finished[root] = true
	}
}

// holds reports whether anybody waits for a rollout that has failed.
func (t *steps) holds(r *rollout, awaited map[*change]bool) bool {
	for c, proves := range r.evidence {
		if proves && awaited[c.root()] {
			return true
		}
	}
	return false
}
