package controller

import (
	"maps"
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
	missed   map[ref]*rollout  // asked for and did not come, or nobody knows
	unseen   map[ref][]*change // what waits for a workload to be looked at
	// done are changes that have ended well, for those who come late; unwell is what
	// was on record when a workload that was not healthy before its turn had failed.
	done   map[place]ended
	unwell map[ref]checksum.Records
	// fallen are failures for which nobody waits, until somebody does.
	fallen map[ref]*fallen
	// past are the workloads whose rollouts of the past are not known yet: nothing
	// rolls before they are, or opens.
	past  map[ref]struct{}
	opens time.Time
}

func newSteps(limits Limits) *steps {
	return &steps{
		limits: limits, changes: map[place]*change{}, waiting: map[ref]*candidate{}, rollouts: map[ref]*rollout{},
		missed: map[ref]*rollout{}, unseen: map[ref][]*change{}, done: map[place]ended{}, unwell: map[ref]checksum.Records{}, fallen: map[ref]*fallen{},
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

// doubt has sources wait of which the API server has more than we know: the watch
// will tell.
func (t *steps) doubt(namespace string, sources []checksum.Source, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.waiting {
		for _, source := range sources {
			if c.user.namespace == namespace && slices.Contains(c.sources, source) {
				c.granted = false
				c.retry = now.Add(doubtFor)
			}
		}
	}
	t.stir()
}

// doubtFor is how long a watch may be behind what a re-admission has shown.
const doubtFor = 5 * time.Second

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

// unseenBy are the changes that wait for a workload to be looked at.
func (t *steps) unseenBy(user ref) []*change {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.unseen[user])
}

// seen notes that a workload was looked at, for changes that waited for it when the
// look began: one that another worker found meanwhile has to be looked for again.
func (t *steps) seen(user ref, changes []*change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.see(user, changes)
}

func (t *steps) see(user ref, changes []*change) {
	var left []*change
	for _, waits := range t.unseen[user] {
		if !slices.Contains(changes, waits) {
			left = append(left, waits)
			continue
		}
		c := waits.root()
		if c.unseen--; c.unseen == 0 {
			t.stir()
		}
	}
	if t.unseen[user] = left; len(left) == 0 {
		delete(t.unseen, user)
	}
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
		c.since, c.tries, c.retry = known.since, known.tries, known.retry
		c.granted = known.granted && !c.due.After(now) && slices.Equal(known.sources, c.sources) // else it was for something else
	}
	if missed := t.missed[c.user]; missed != nil { // it did not come
		c.tries, c.retry = missed.tries+1, missed.retry
		delete(t.missed, c.user)
		t.undo(c.user, missed)
	}
	if c.retry.After(c.due) {
		c.due = c.retry
	}
	if r := t.rollouts[c.user]; r != nil && c.busy {
		c.busy, c.last = false, true // it rolls for what is past
	}
	t.waiting[c.user] = &c
	t.join(&c, now)
	if known == nil || known.due != c.due || known.last != c.last || known.busy != c.busy || !slices.Equal(known.sources, c.sources) {
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
			t.find(at, now)
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

// find begins a change that was there before us, or has ended already.
func (t *steps) find(at place, now time.Time) {
	content := t.content(at)
	defer t.rise(at)
	if known, ended := t.done[at]; ended && known.content.SameEntries(content) {
		t.begin(at, &change{born: now, contents: map[place]*checksum.Content{at: content}}, nil)
		t.changes[at].proven[at] = known.proven
		return
	}
	users := t.users(at)
	t.begin(at, &change{born: now, found: true, contents: map[place]*checksum.Content{at: content}}, users)
	for _, user := range users {
		t.look(user)
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

// withdraw notes that a workload does not wait any more, nor for a retry: whether what
// it took has come is known before that is found out.
func (t *steps) withdraw(user ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.missed, user)
	if t.waiting[user] != nil {
		delete(t.waiting, user)
		t.stir()
	}
}

// overtaken notes that a workload that waits, for its turn or a retry, carries what is
// true: as it was put back, or because somebody has rolled it. Then its rollout counts
// as if it had been granted.
func (t *steps) overtaken(user ref, records checksum.Records, now time.Time) (rolls bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.missed, user)
	c := t.waiting[user]
	if c == nil {
		return false
	}
	if rolls = rolledBetween(c.records, records); rolls {
		t.begins(c, now)
	} else {
		delete(t.waiting, user)
	}
	t.stir()
	return rolls
}

// take begins the rollout of a workload whose turn has come.
func (t *steps) take(user ref, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.waiting[user]; c != nil {
		t.begins(c, now)
	}
}

func (t *steps) begins(c *candidate, now time.Time) {
	user := c.user
	delete(t.waiting, user)
	r := &rollout{began: now, evidence: map[*change]bool{}, holds: map[*change]hold{}, records: c.records, last: c.last || c.mute || c.silent || c.unready, before: t.rollouts[user], tries: c.tries}
	if was := r.before; was != nil {
		was.before = nil
		maps.Copy(r.holds, was.holds)
		r.why = was.why
		for change, proves := range was.evidence {
			switch {
			case !was.failed:
				r.evidence[change] = proves
			case proves:
				r.holds[change] = hold{was.began, append(slices.Clone(was.places), r.holds[change].places...)}
			}
		}
	}
	for _, source := range c.sources {
		at := place{user.namespace, source}
		change := t.changes[at].root()
		r.evidence[change] = r.proves() || r.evidence[change]
		r.places = append(r.places, at)
	}
	if was := r.before; was != nil && !was.failed { // it is yet to show how it does with those as well
		for _, at := range was.places {
			if !slices.Contains(r.places, at) {
				r.places = append(r.places, at)
			}
		}
	}
	t.rollouts[user] = r
}

// fail notes that what was taken did not come, or, unless that is certain, that
// nobody knows. It has its next turn after a while.
func (t *steps) fail(user ref, certain bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	if r == nil {
		return
	}
	r.retry = now.Add(min(firstRetry<<min(r.tries, 20), lastRetry))
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

// again reports whether a workload is to be tried again.
func (t *steps) again(user ref) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[user]
	return t.missed[user] != nil || c != nil && c.tries > 0
}

// came notes what is on record of a workload after it was taken, whose answer may
// have been lost.
func (t *steps) came(user ref, records checksum.Records, sources []checksum.Source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	if r == nil || r.found {
		return
	}
	if !rolledBetween(r.records, records) {
		if t.missed[user] == r {
			t.undo(user, r)
			t.stir()
		}
		return
	}
	delete(t.missed, user)
	r.rolled = nil
	for _, source := range sources {
		was, _ := r.records.Of(source)
		if is, _ := records.Of(source); is != was {
			r.rolled = append(r.rolled, source)
		}
	}
}

// testify has a rollout of ours count for the changes of sources that it has taken
// since it was granted, and that are new to us.
func (t *steps) testify(user ref, places []place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	for _, at := range places {
		c := t.changes[at]
		if r == nil || c == nil {
			continue
		}
		if _, counts := r.evidence[c.root()]; !counts {
			r.evidence[c.root()] = r.proves()
			r.places = append(r.places, at)
			t.stir()
		}
	}
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
		r = &rollout{began: began, found: true, evidence: map[*change]bool{}, holds: map[*change]hold{}}
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

// prove counts a workload that was found to be healthy with sources for long
// enough.
func (t *steps) prove(places []place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range places {
		if c := t.changes[at]; c != nil {
			c.root().proven[at]++
		}
	}
	t.stir()
}

// wasUnwell reports whether a workload is known not to have been healthy before
// what is on record.
func (t *steps) wasUnwell(user ref, records checksum.Records) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.unwell[user]
	return known && was.Equal(records)
}

// halt notes that a rollout has failed, with what is on record.
func (t *steps) halt(user ref, why string, records checksum.Records) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rollouts[user]
	if r == nil {
		return
	}
	r.failed, r.why = true, why
	if r.last {
		t.unwell[user] = records
	}
	for c, proves := range r.evidence {
		if !proves {
			c.root().settled++ // nobody waits for it to be healthy
		}
	}
	t.stir()
}
