package controller

import (
	"maps"
	"math"
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
	leads    bool // before that, changes are for others to follow
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
	t.leads = true
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
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.off() || !t.leads {
		return
	}
	defer t.stir()
	if known := t.changes[at]; known != nil {
		known = known.root()
		if known.contents[at].SameEntries(content) {
			return
		}
		delete(known.contents, at)
	}
	for _, c := range t.waiting {
		if c.user.namespace == at.namespace && slices.Contains(c.sources, at.source) {
			c.granted = false // that was for what it held before
		}
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

// halt notes that a rollout has failed.
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
