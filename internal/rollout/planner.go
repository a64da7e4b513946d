package rollout

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Cluster is what the planner looks up. It must not call the planner.
type Cluster interface {
	// Using are the workloads that a source concerns.
	Using(at SourceRef) []workload.Ref
	// Content is what a source holds, nil when it does not exist.
	Content(at SourceRef) *checksum.Content
	// Written is when a source's data was last written, zero when that is not known.
	Written(at SourceRef) time.Time
	// Copies are the sources of one kind and name, in all namespaces.
	Copies(of checksum.Source) []SourceRef
	// Workloads is how many workloads can roll.
	Workloads() int
}

// Planner decides when workloads roll. It is told of edits, of looks at workloads, and of what
// became of patches, and remembers little. Cycle counts everything anew, and gives orders. It is not
// safe for concurrent use.
type Planner struct {
	limits   Limits
	cluster  Cluster
	keys     copyKeys
	settling settling
	warned   map[SourceRef]time.Time // when people were told that a source is written too often

	leads bool
	// unexamined are the workloads of which it is not known whether they rolled already when
	// this process began to lead. Until they are looked at, or opens, nothing rolls.
	unexamined map[workload.Ref]struct{}
	opens      time.Time

	number  uint64
	changes map[SourceRef]*opened
	open    []*opened // the same, the oldest first
	ended   map[SourceRef]ended
	left    map[groupKey]time.Time // when a copy went on to other content, and the others are about to follow
	tracks  map[workload.Ref]*track
	all     []*track             // the same
	turns   map[string]time.Time // when a namespace last had a turn
	toLook  []workload.Ref
	// attempts are with contents that nothing has proven yet, the oldest first.
	attempts map[SourceRef][]attempt

	// Of one cycle.
	slots, slotsIn int // as of budgeted
	budgeted       time.Time
	under          int
	underIn        map[string]int
}

// NewPlanner is a planner for a process that does not lead yet.
func NewPlanner(limits Limits, cluster Cluster) *Planner {
	return &Planner{
		limits: limits, cluster: cluster, keys: copyKeys{maphash.MakeSeed(), limits.ReplicatedEach},
		settling: settling{window: limits.Settle, edits: map[SourceRef]edit{}}, warned: map[SourceRef]time.Time{},
		unexamined: map[workload.Ref]struct{}{}, changes: map[SourceRef]*opened{}, ended: map[SourceRef]ended{}, left: map[groupKey]time.Time{},
		tracks: map[workload.Ref]*track{}, turns: map[string]time.Time{}, attempts: map[SourceRef][]attempt{}, underIn: map[string]int{},
	}
}

// Off reports whether everything rolls at once.
func (p *Planner) Off() bool { return p.limits.Step == 0 }

// Mark is a moment: what is known of a workload at it counts for the changes that were opened
// before.
func (p *Planner) Mark() uint64 { return p.number }

// Lead notes that this process leads from now on, and which workloads there are. All are to be
// looked at.
func (p *Planner) Lead(refs []workload.Ref, now time.Time) {
	if p.settling.began = now; p.Off() {
		return
	}
	p.leads, p.opens = true, now.Add(openWithin)
	for _, ref := range refs {
		p.unexamined[ref] = struct{}{}
	}
}

// track is what is remembered of a workload, from now on.
func (p *Planner) track(ref workload.Ref) *track {
	t := p.tracks[ref]
	if t == nil {
		t = &track{ref: ref}
		p.tracks[ref], p.all = t, append(p.all, t)
	}
	return t
}

// known is what is remembered of a workload: nothing, of one that nobody has told of.
func (p *Planner) known(ref workload.Ref) *track {
	if t := p.tracks[ref]; t != nil {
		return t
	}
	return &track{}
}

// join gives a workload a part in a change, if it has none.
func (t *track) join(c *opened) *part {
	known := t.parts
	if len(c.parts) < len(known) { // either may be long
		known = c.parts
	}
	for _, its := range known {
		if its.track == t && its.change == c {
			return its
		}
	}
	its := &part{track: t, change: c}
	t.parts, c.parts = append(t.parts, its), append(c.parts, its)
	return its
}

// leaves takes parts of a workload out of their changes.
func (t *track) leaves(which func(*part) bool) {
	t.parts = slices.DeleteFunc(t.parts, func(its *part) bool {
		gone := which(its)
		if gone {
			its.change.parts = slices.DeleteFunc(its.change.parts, func(other *part) bool { return other == its })
		}
		return gone
	})
}

// Edited notes that a source holds other content than before, or says something else. All who
// use it are to be looked at.
func (p *Planner) Edited(at SourceRef, was, is *checksum.Content, now time.Time) {
	refs, c := p.cluster.Using(at), p.changes[at]
	if len(refs) == 0 && c == nil {
		return
	}
	p.settling.edited(at, now)
	if p.Off() || !p.leads {
		return
	}
	if c != nil && c.content == is.Fingerprint() {
		return
	}
	if c != nil && len(c.copies.changes) > 1 && now.Sub(p.left[c.key]) >= 10*replicatedWithin {
		p.left[c.key] = now // not again soon, as one copy may leave and join all the time
	}
	next := p.begin(at, is, refs, now)
	if was != nil {
		next.key = p.keys.keyOf(at, was, is)
	}
}

// begin opens a change, in the place of the one that the source has.
func (p *Planner) begin(at SourceRef, is *checksum.Content, refs []workload.Ref, now time.Time) *opened {
	p.number++
	c := p.changes[at]
	if c == nil {
		c = &opened{copies: &copies{}}
		p.changes[at] = c
	} else {
		p.open = slices.DeleteFunc(p.open, func(other *opened) bool { return other == c })
	}
	was, proven, before := c.content, c.all().proven, c.number
	*c = opened{at: at, number: p.number, content: is.Fingerprint(), born: now, parts: c.parts, copies: &copies{changes: []*opened{c}}}
	p.open = append(p.open, c)
	if a := p.attemptOf(at, c.content); a != nil && !p.resumed(at, a.began) {
		c.again = a.ref
	}
	left := now
	if written := p.cluster.Written(at); !written.IsZero() && written.Before(now) {
		left = written // the watch may be late
	}
	uses := map[*part]bool{}
	for _, ref := range refs {
		its := p.track(ref).join(c)
		if uses[its] = true; its.asked.IsZero() || its.track.facts != nil && its.track.facts.Mark >= before && !its.unsure {
			its.asked = now // it was read since it was asked for last
		}
	}
	for _, its := range slices.Clone(c.parts) {
		if !uses[its] && its.track.gone.IsZero() {
			its.track.leaves(func(part *part) bool { return part == its })
			continue
		}
		its.goesAndReturns(was, left, now)
		its.carryOver(p.tookOf(its, was, proven, now) && proven > 0)
		if its.take == nil {
			its.take = its.takenBefore(now)
		}
		if t := its.track; t.turn != nil && its.untrue {
			t.turn = nil // that was for what it held before
		}
	}
	return c
}

// tookOf reports whether a workload took what its source held before. While nothing has proven that, it
// is remembered.
func (p *Planner) tookOf(its *part, was checksum.Fingerprint, proven int, now time.Time) bool {
	took := its.take != nil && its.ahead == 0 && !its.returned && its.content == was
	if took && proven == 0 && its.tries() {
		p.remembers(its, was, now)
	}
	return took
}

// carryOver says what is left of what a workload took, now that the source holds something
// else. Who failed where others were well is broken for a reason of its own. Who is gone is
// not waited for.
func (p *part) carryOver(othersProved bool) {
	p.unsure = false
	if p.wentBack() { // else it counts as failed: it takes the next content first
		p.declined = p.isCurrent()
	}
	switch {
	case p.take == nil, p.isCurrent():
	case !p.open(), p.returned, !p.track.gone.IsZero(), (p.take.state == Failed || p.down) && othersProved:
		p.take = nil
	}
}

// find opens a change that was there before us, or has ended already.
func (p *Planner) find(at SourceRef, now time.Time) {
	c, written := p.found(at, p.cluster.Content(at), now), p.cluster.Written(at)
	if !c.copied() || written.IsZero() {
		return
	}
	for _, copied := range p.cluster.Copies(at.Source) {
		its := p.cluster.Content(copied)
		if p.changes[copied] != nil || written.Sub(p.cluster.Written(copied)).Abs() > replicatedWithin {
			continue
		}
		switch proven, ended := p.provenBefore(copied, its); {
		case p.keys.keyOf(copied, nil, its) != c.key:
		case ended:
			c.before += proven
		default:
			p.found(copied, its, now)
		}
	}
}

// found opens one change that was there before us, or has ended: then somebody may have declined
// the content since.
func (p *Planner) found(at SourceRef, content *checksum.Content, now time.Time) *opened {
	refs := p.cluster.Using(at)
	p.toLook = append(p.toLook, refs...)
	c := p.begin(at, content, refs, now)
	if proven, ended := p.provenBefore(at, content); ended {
		c.before = proven
		return c
	}
	c.found, c.key, c.full = true, p.keys.keyOf(at, nil, content), p.keys.hash(content, false)
	return c
}

// provenBefore is how many have proven a content whose change has ended.
func (p *Planner) provenBefore(at SourceRef, content *checksum.Content) (proven int, ended bool) {
	known, ended := p.ended[at]
	return known.proven, ended && known.content == content.Fingerprint()
}

// Needs is what the next look at a workload has to read beside it.
func (p *Planner) Needs(ref workload.Ref) Needs { return p.known(ref).needs }

// Watched calls yield with each workload whose status matters for a cycle, and the facts that are
// known of it, which yield brings up to date.
func (p *Planner) Watched(yield func(workload.Ref, *Facts)) {
	for _, t := range p.all {
		if t.facts != nil && t.gone.IsZero() && t.watched() {
			yield(t.ref, t.facts)
		}
	}
}

// watched reports whether a rollout of a workload is judged, or it is one of the first that took
// something.
func (t *track) watched() bool {
	return t.trial != nil || t.back != nil || t.some(func(its *part) bool { return its.take != nil && its.first })
}

// Concerned reports whether anything depends on what a workload carries, and on what it declines.
func (p *Planner) Concerned(ref workload.Ref, sources []checksum.Source) bool {
	changes := func(source checksum.Source) bool { return p.changes[SourceRef{ref.Namespace, source}] != nil }
	return p.tracks[ref] != nil || slices.ContainsFunc(sources, changes)
}

// Busy reports whether there is anything that a cycle may have to do.
func (p *Planner) Busy() bool { return len(p.all) > 0 || len(p.toLook) > 0 }

// Forget drops a workload that is gone. What it has yet to show of content that it took is kept
// for a while: it may be made again.
func (p *Planner) Forget(ref workload.Ref, now time.Time) {
	t := p.tracks[ref]
	delete(p.unexamined, ref)
	if t == nil || !t.gone.IsZero() {
		return
	}
	t.gone, t.turn, t.uncertain, t.past, t.last, t.pace, t.finding, t.since = now, nil, false, false, false, nil, nil, time.Time{}
	if r := t.trial; r != nil && r.health.trouble != "" && !r.failed {
		t.failTakes(&Failure{Cause: Crashes, Word: r.health.trouble, Verdict: "since then it was deleted"}, now)
		r.failed = true
	}
	t.leaves(func(its *part) bool { return its.take == nil })
}

// Follows reports whether a rollout of a workload is watched.
func (p *Planner) Follows(ref workload.Ref) bool { return p.known(ref).trial != nil }

// ended is a change that has ended well.
type ended struct {
	content checksum.Fingerprint
	proven  int
}
