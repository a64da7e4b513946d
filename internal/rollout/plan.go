package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// steps decides whose turn it is. A change rolls one workload first, twice as
// many each time they have become healthy, and stops when one fails; all changes
// together keep within a budget of rollouts that are not settled.
//
// It knows no client and no clock. What it knows of the cluster it is told, and is
// told again by a process that begins to lead: see find in health.go.
type Plan struct {
	limits  Limits
	cluster Cluster
	stirs   []Stir

	settling settling
	pace     pace
	findings map[workload.Ref]finding
	begun    uint64 // changes so far

	leads    bool // before that, changes are for others to follow
	changes  map[SourceRef]*change
	waiting  map[workload.Ref]*waiter
	rollouts map[workload.Ref]*attempt
	missed   map[workload.Ref]*attempt  // asked for and did not come, or nobody knows
	unseen   map[workload.Ref][]*change // what waits for a workload to be looked at
	// done are changes that have ended well, for those who come late; unwell is what
	// was on record when a workload that was not healthy before its turn had failed.
	done   map[SourceRef]ended
	unwell map[workload.Ref]checksum.Records
	// fallen are failures for which nobody waits, until somebody does.
	fallen map[workload.Ref]*fallen
	// past are the workloads whose rollouts of the past are not known yet: nothing
	// rolls before they are, or opens.
	past  map[workload.Ref]struct{}
	opens time.Time
}

// Cluster is what the plan looks up. It must not call the plan.
type Cluster interface {
	// Users are the workloads that a source concerns.
	Users(at SourceRef) []workload.Ref
	// Content is what a source holds, nil when it does not exist.
	Content(at SourceRef) *checksum.Content
	// Written is when a source's data was last written, zero when that is not known.
	Written(at SourceRef) time.Time
}

// Stir asks for a look at a workload, or, of the zero Ref, for Next, after a while.
type Stir struct {
	User  workload.Ref
	After time.Duration
}

// Stirs are those since it was last asked, in their order.
func (p *Plan) Stirs() []Stir {
	stirs := p.stirs
	p.stirs = nil
	return stirs
}

func (p *Plan) look(user workload.Ref)   { p.stirs = append(p.stirs, Stir{User: user}) }
func (p *Plan) call(after time.Duration) { p.stirs = append(p.stirs, Stir{After: after}) }

// New is a plan for a process that does not lead yet.
func New(limits Limits, cluster Cluster) *Plan {
	return &Plan{
		limits: limits, cluster: cluster, settling: settling{window: limits.Settle, edits: map[SourceRef]edit{}}, pace: newPace(limits.Settle), findings: map[workload.Ref]finding{},
		changes: map[SourceRef]*change{}, waiting: map[workload.Ref]*waiter{}, rollouts: map[workload.Ref]*attempt{},
		missed: map[workload.Ref]*attempt{}, unseen: map[workload.Ref][]*change{}, done: map[SourceRef]ended{}, unwell: map[workload.Ref]checksum.Records{}, fallen: map[workload.Ref]*fallen{},
	}
}

// off reports whether everything rolls at once.
func (p *Plan) Off() bool { return p.limits.Step == 0 }

// openWithin bounds how long a change waits for workloads that cannot be looked at.
const openWithin = time.Minute

// lead notes that this process leads from now on.
func (p *Plan) Lead(users []workload.Ref, now time.Time) {
	if p.settling.began = now; p.Off() {
		return
	}
	p.leads = true
	p.past, p.opens = make(map[workload.Ref]struct{}, len(users)), now.Add(openWithin)
	for _, user := range users {
		p.past[user] = struct{}{}
	}
	p.stir()
}

// stir has the turns looked at: at once, unless so many wait that it takes a while.
func (p *Plan) stir() {
	const many, together = 64, 20 * time.Millisecond
	if len(p.waiting) < many {
		p.call(0)
	} else {
		p.call(together)
	}
}

// isPast reports whether it is not known whether a workload rolls already.
func (p *Plan) isPast(user workload.Ref) bool {
	_, past := p.past[user]
	return past
}

// changed notes that a source has another content, or says something else.
func (p *Plan) Edited(at SourceRef, content *checksum.Content, users []workload.Ref, now time.Time) {
	p.settling.edited(at, now)
	if p.Off() || !p.leads {
		return
	}
	defer p.stir()
	if known := p.changes[at]; known != nil {
		known = known.root()
		if known.contents[at].SameEntries(content) {
			return
		}
		delete(known.contents, at)
	}
	for _, c := range p.waiting {
		if c.user.Namespace == at.Namespace && slices.Contains(c.sources, at.Source) {
			c.granted = false // that was for what it held before
		}
	}
	p.begin(at, &change{born: now, contents: map[SourceRef]*checksum.Content{at: content}}, users)
}

func (p *Plan) begin(at SourceRef, c *change, users []workload.Ref) {
	p.changes[at] = c
	p.begun++
	c.number = p.begun
	c.unseen = len(users)
	c.proven = map[SourceRef]int{}
	for _, user := range users {
		p.unseen[user] = append(p.unseen[user], c)
	}
}

// doubt has sources wait of which the API server has more than we know: the watch
// will tell.
func (p *Plan) Postpone(namespace string, sources []checksum.Source, now time.Time) {
	for _, c := range p.waiting {
		for _, source := range sources {
			if c.user.Namespace == namespace && slices.Contains(c.sources, source) {
				c.granted = false
				c.retry = now.Add(doubtFor)
			}
		}
	}
	p.stir()
}

// doubtFor is how long a watch may be behind what a re-admission has shown.
const doubtFor = 5 * time.Second

// unproven gives the sources whose changes wait for a workload to be looked at;
// true for those that were found: they want to know of past rollouts as well.
func (p *Plan) unproven(user workload.Ref) map[SourceRef]bool {
	var open map[SourceRef]bool
	for _, c := range p.unseen[user] {
		for at := range c.root().contents {
			if open == nil {
				open = map[SourceRef]bool{}
			}
			open[at] = c.root().found
		}
	}
	return open
}

// Mark is a moment: what is known of a workload at it counts for the changes that
// began before.
func (p *Plan) Mark() uint64 { return p.begun }

// seen notes that a workload was looked at, for the changes that had begun at a mark:
// one that another worker found meanwhile has to be looked for again.
func (p *Plan) seen(user workload.Ref, mark uint64) {
	var left []*change
	for _, waits := range p.unseen[user] {
		if waits.number > mark {
			left = append(left, waits)
			continue
		}
		c := waits.root()
		if c.unseen--; c.unseen == 0 {
			p.stir()
		}
	}
	if p.unseen[user] = left; len(left) == 0 {
		delete(p.unseen, user)
	}
	if _, past := p.past[user]; past {
		if delete(p.past, user); len(p.past) == 0 {
			p.past = nil
			p.stir()
		}
	}
}

// turn is what a candidate is told.
type turn struct {
	granted bool
	since   time.Time // since when it waits
	// halted is by whom its change is halted, and why.
	halted workload.Ref
	why    string
}

// wait has a workload wait for its turn, or tells that it has come.
func (p *Plan) wait(c waiter, now time.Time) turn {
	known := p.waiting[c.user]
	c.since = now
	if known != nil {
		c.since, c.tries, c.retry = known.since, known.tries, known.retry
		c.granted = known.granted && !c.due.After(now) && slices.Equal(known.sources, c.sources) // else it was for something else
	}
	if missed := p.missed[c.user]; missed != nil { // it did not come
		c.tries, c.retry = missed.tries+1, missed.retry
		delete(p.missed, c.user)
		p.undo(c.user, missed)
	}
	if c.retry.After(c.due) {
		c.due = c.retry
	}
	if r := p.rollouts[c.user]; r != nil && c.busy {
		c.busy, c.last = false, true // it rolls for what is past
	}
	p.waiting[c.user] = &c
	p.join(&c, now)
	if known == nil || known.due != c.due || known.last != c.last || known.busy != c.busy || !slices.Equal(known.sources, c.sources) {
		p.stir()
	}
	answer := turn{granted: c.granted, since: c.since}
	for _, source := range c.sources {
		if change := p.changes[SourceRef{Namespace: c.user.Namespace, Source: source}].root(); change.halted != (workload.Ref{}) {
			answer.halted = change.halted
			if r := p.rollouts[change.halted]; r != nil {
				answer.why = r.why
			}
		}
	}
	return answer
}

// undo puts back what was known before a rollout that did not come.
func (p *Plan) undo(user workload.Ref, r *attempt) {
	switch {
	case p.rollouts[user] != r:
	case r.before != nil:
		p.rollouts[user] = r.before
	default:
		delete(p.rollouts, user)
	}
}

// join makes one change of what concerns a candidate and has settled together.
func (p *Plan) join(c *waiter, now time.Time) {
	var first *change
	for _, source := range c.sources {
		at := SourceRef{Namespace: c.user.Namespace, Source: source}
		if p.changes[at] == nil {
			p.findChange(at, now)
		}
		other := p.changes[at].root()
		switch {
		case first == nil:
			first = other
		case first != other && !first.begun() && !other.begun() && first.found == other.found && !p.rolls(first) && !p.rolls(other):
			first.unseen += other.unseen
			maps.Copy(first.contents, other.contents)
			maps.Copy(first.proven, other.proven)
			other.into = first
		}
	}
}

// findChange begins a change that was there before us, or has ended already.
func (p *Plan) findChange(at SourceRef, now time.Time) {
	content := p.cluster.Content(at)
	defer p.rise(at)
	if known, ended := p.done[at]; ended && known.content.SameEntries(content) {
		p.begin(at, &change{born: now, contents: map[SourceRef]*checksum.Content{at: content}}, nil)
		p.changes[at].proven[at] = known.proven
		return
	}
	users := p.cluster.Users(at)
	p.begin(at, &change{born: now, found: true, contents: map[SourceRef]*checksum.Content{at: content}}, users)
	for _, user := range users {
		p.look(user)
	}
}

// rolls reports whether anything rolls for a change now.
func (p *Plan) rolls(c *change) bool {
	for _, r := range p.rollouts {
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
func (p *Plan) Withdraw(user workload.Ref) {
	delete(p.missed, user)
	if p.waiting[user] != nil {
		delete(p.waiting, user)
		p.stir()
	}
}

// overtaken notes that a workload that waits, for its turn or a retry, carries what is
// true: as it was put back, or because somebody has rolled it. Then its rollout counts
// as if it had been granted.
func (p *Plan) RolledByOthers(user workload.Ref, records checksum.Records, now time.Time) (rolls bool) {
	delete(p.missed, user)
	c := p.waiting[user]
	if c == nil {
		return false
	}
	if rolls = RolledBetween(c.records, records); rolls {
		p.begins(c, now)
	} else {
		delete(p.waiting, user)
	}
	p.stir()
	return rolls
}

// take begins the rollout of a workload whose turn has come.
func (p *Plan) Sent(user workload.Ref, now time.Time) {
	if c := p.waiting[user]; c != nil {
		p.begins(c, now)
	}
}

func (p *Plan) begins(c *waiter, now time.Time) {
	user := c.user
	delete(p.waiting, user)
	r := &attempt{began: now, evidence: map[*change]bool{}, holds: map[*change]hold{}, records: c.records, last: c.last || c.mute || c.silent || c.unready, before: p.rollouts[user], tries: c.tries}
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
		at := SourceRef{Namespace: user.Namespace, Source: source}
		change := p.changes[at].root()
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
	p.rollouts[user] = r
}

// fail notes that what was taken did not come, or, unless that is certain, that
// nobody knows. It has its next turn after a while.
func (p *Plan) Refused(user workload.Ref, certain bool, now time.Time) {
	r := p.rollouts[user]
	if r == nil {
		return
	}
	r.retry = now.Add(min(FirstRetry<<min(r.tries, 20), LastRetry))
	p.missed[user] = r
	if certain {
		p.undo(user, r)
	}
	p.stir()
}

// uncertain reports whether it is not known if what was taken has come.
func (p *Plan) Uncertain(user workload.Ref) bool {
	r := p.missed[user]
	return r != nil && p.rollouts[user] == r
}

// again reports whether a workload is to be tried again.
func (p *Plan) Again(user workload.Ref) bool {
	c := p.waiting[user]
	return p.missed[user] != nil || c != nil && c.tries > 0
}

// Answered is Confirmed of a patch whose answer showed the workload as it is now.
func (p *Plan) Answered(user workload.Ref, records checksum.Records, sources []checksum.Source, status workload.Status) {
	p.Confirmed(user, records, sources)
	if r := p.rollouts[user]; r != nil {
		r.health.status = status.StatusHash
	}
}

// came notes what is on record of a workload after it was taken, whose answer may
// have been lost.
func (p *Plan) Confirmed(user workload.Ref, records checksum.Records, sources []checksum.Source) {
	r := p.rollouts[user]
	if r == nil || r.found {
		return
	}
	if !RolledBetween(r.records, records) {
		if p.missed[user] == r {
			p.undo(user, r)
			p.stir()
		}
		return
	}
	delete(p.missed, user)
	r.rolled = nil
	for _, source := range sources {
		was, _ := r.records.Of(source)
		if is, _ := records.Of(source); is != was {
			r.rolled = append(r.rolled, source)
		}
	}
}

// board has a rollout followed that others have begun, or who led before, and lets
// it count for some changes, or not. One that is followed already counts for
// more.
func (p *Plan) board(user workload.Ref, began time.Time, places []SourceRef, proves bool) *attempt {
	r := p.rollouts[user]
	if r == nil {
		r = &attempt{began: began, found: true, evidence: map[*change]bool{}, holds: map[*change]hold{}}
		p.rollouts[user] = r
	}
	for _, at := range places {
		if c := p.changes[at]; c != nil {
			r.evidence[c.root()] = proves || r.evidence[c.root()]
			r.places = append(r.places, at)
		}
	}
	p.stir()
	return r
}

// prove counts a workload that was found to be healthy with sources for long
// enough.
func (p *Plan) prove(places []SourceRef) {
	for _, at := range places {
		if c := p.changes[at]; c != nil {
			c.root().proven[at]++
		}
	}
	p.stir()
}

// wasUnwell reports whether a workload is known not to have been healthy before
// what is on record.
func (p *Plan) wasUnwell(user workload.Ref, records checksum.Records) bool {
	was, known := p.unwell[user]
	return known && was.Equal(records)
}

// halt notes that a rollout has failed, with what is on record.
func (p *Plan) halt(user workload.Ref, why string, records checksum.Records) {
	r := p.rollouts[user]
	if r == nil {
		return
	}
	r.failed, r.why = true, why
	if r.last {
		p.unwell[user] = records
	}
	for c, proves := range r.evidence {
		if !proves {
			c.root().settled++ // nobody waits for it to be healthy
		}
	}
	p.stir()
}

// pass has a workload that was granted its turn give it back, and wait for another.
func (p *Plan) Unlooked(user workload.Ref, now time.Time) {
	c := p.waiting[user]
	if c == nil {
		return
	}
	c.granted = false
	c.retry = now.Add(min(FirstRetry<<min(c.tries, 20), LastRetry))
	c.due = c.retry
	c.tries++
	p.stir()
}

// granted are those whose turn it is.
func (p *Plan) Granted() (users []workload.Ref) {
	for user, c := range p.waiting {
		if c.granted {
			users = append(users, user)
		}
	}
	return users
}

// A workload that was refused is tried again after a while, twice as long each time.
const (
	FirstRetry = 200 * time.Millisecond
	LastRetry  = time.Minute
)

// Panicked is about a workload at which a look panicked. After RolloutDeadline without
// progress its rollout has failed, as nobody can know whether it is healthy.
func (p *Plan) Panicked(user workload.Ref, records checksum.Records, now time.Time) {
	p.Unlooked(user, now)
	r := p.rollouts[user]
	if r == nil || r.failed {
		return
	}
	progressed := r.began
	if r.health.progressed.After(progressed) {
		progressed = r.health.progressed
	}
	if now.Sub(progressed) >= p.limits.RolloutDeadline {
		p.halt(user, "configstamp itself fails at it, so that nobody knows whether it is healthy", records)
	}
}
