package rollout

import (
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Cluster is what the plan looks up. It must not call the plan.
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

// Plan is the plan of all rollouts. It is not safe for concurrent use.
type Plan struct {
	limits   Limits
	cluster  Cluster
	keys     copyKeys
	requeues []Requeue
	requeued bool

	settling settling
	told     map[SourceRef]time.Time // when people were told that a source is written too often
	records  map[workload.Ref]*record
	waiting  int // for their turn
	timers   timers

	leads     bool // before that, changes are for others to follow
	begun     uint64
	changes   map[SourceRef]*change
	open      []*change // those that are not over, the oldest first
	toRecheck []*change // to be judged
	groups    map[groupKey]*group
	// manyGroups is how many there are to be before some are forgotten.
	manyGroups int
	// done are changes that have ended well, for workloads that start waiting later.
	done map[SourceRef]ended
	// fell are workloads that have failed with a source for which no workload waits.
	fell map[SourceRef]map[*record]struct{}
	// decliners are workloads of which an undo has declined what a source holds.
	decliners map[SourceRef]map[*record]struct{}

	slots, slotsIn int // in the cluster, and in each namespace
	under          int // how many are taken
	underIn        map[string]int
	turns          map[string]time.Time // when a namespace last had a turn, of those that have changes
	recounted      time.Time
	// unexamined is how many workloads are yet to be looked at, to know whether they rolled
	// already: nothing rolls before, or opens.
	unexamined int
	opens      time.Time
}

// New is a plan for a process that does not lead yet.
func New(limits Limits, cluster Cluster) *Plan {
	p := &Plan{
		limits: limits, cluster: cluster, keys: copyKeys{maphash.MakeSeed(), limits.ReplicatedEach},
		settling: settling{window: limits.Settle, edits: map[SourceRef]edit{}}, told: map[SourceRef]time.Time{},
		records: map[workload.Ref]*record{}, changes: map[SourceRef]*change{}, groups: map[groupKey]*group{}, done: map[SourceRef]ended{},
		underIn: map[string]int{}, turns: map[string]time.Time{}, fell: map[SourceRef]map[*record]struct{}{},
		decliners: map[SourceRef]map[*record]struct{}{},
	}
	p.budget()
	return p
}

// budget counts the slots.
func (p *Plan) budget() {
	p.slots = p.limits.Unsettled.Slots(p.cluster.Workloads())
	p.slotsIn = PerNamespace(p.slots, p.limits.UnsettledPerNamespace)
}

// Off reports whether everything rolls at once.
func (p *Plan) Off() bool { return p.limits.Step == 0 }

// Requeue asks for a look at a workload, or, of the zero Ref, for Next, after a while.
type Requeue struct {
	Workload workload.Ref
	After    time.Duration
}

// Requeues are those since it was last asked, in their order.
func (p *Plan) Requeues() []Requeue {
	requeues := p.requeues
	p.requeues = nil
	return requeues
}

func (p *Plan) look(ref workload.Ref) { p.requeues = append(p.requeues, Requeue{Workload: ref}) }

// requeue asks for Next: at once, unless so many wait that it takes a while.
func (p *Plan) requeue() {
	const crowd, together = 64, 20 * time.Millisecond
	switch {
	case p.requeued:
	case p.waiting < crowd:
		p.requeues = append(p.requeues, Requeue{})
	default:
		p.requeues = append(p.requeues, Requeue{After: together})
	}
	p.requeued = true
}

// Lead notes that this process leads from now on, and which workloads there are.
func (p *Plan) Lead(refs []workload.Ref, now time.Time) {
	p.budget()
	p.recounted = now
	if p.settling.began = now; p.Off() {
		return
	}
	p.leads = true
	p.unexamined, p.opens = len(refs), now.Add(openWithin)
	for _, ref := range refs {
		r := p.of(ref)
		p.update(r, now, func() { r.unexamined = true })
	}
	p.requeue()
}

// Edited notes that a source holds another content than before, or says something else.
func (p *Plan) Edited(at SourceRef, was, is *checksum.Content, now time.Time) {
	refs := p.cluster.Using(at)
	if len(refs) == 0 {
		return
	}
	p.settling.edited(at, now)
	if p.Off() || !p.leads {
		return
	}
	defer p.requeue()
	if known := p.changes[at]; known != nil {
		c := known.root()
		if p.recheck(c); c.contents[at].SameEntries(is) {
			return
		}
		c.leave(at, now)
		delete(c.contents, at)
		if g := known.group; g != nil {
			g.unseen -= known.left
			known.group = nil
		}
	}
	c := p.begin(at, is, false, refs, now)
	if key, replicable := p.keys.keyOf(at, was, is); replicable && was != nil {
		p.groupOf(key, now).attach(c, at)
	}
	for _, ref := range refs {
		r := p.records[ref]
		if r == nil || r.waits == nil || !slices.Contains(r.waits.sources, at.Source) {
			continue
		}
		p.update(r, now, func() { r.waits.granted = time.Time{} }) // that was for what it held before
	}
}

// begin begins the change of a source, for which users have to be looked at.
func (p *Plan) begin(at SourceRef, content *checksum.Content, found bool, refs []workload.Ref, now time.Time) *change {
	p.begun++
	c := &change{
		number: p.begun, namespace: at.Namespace, born: now, found: found, unseen: len(refs), left: len(refs),
		contents: map[SourceRef]*checksum.Content{at: content}, groups: map[SourceRef]*group{}, proven: map[SourceRef]int{},
		members: map[*record]struct{}{}, failures: map[*record]time.Time{},
	}
	p.changes[at] = c
	p.open = append(p.open, c)
	p.recheck(c)
	for _, ref := range refs {
		r := p.of(ref)
		r.unseen = append(slices.DeleteFunc(r.unseen, (*change).passed), c)
	}
	for _, r := range sortedRecords(maps.Keys(p.decliners[at])) {
		p.update(r, now, func() {}) // what it has declined may be this content
	}
	return c
}

// passed reports whether a change that waited for a workload to be looked at has nothing
// to wait for any more, as its sources have changed again.
func (c *change) passed() bool {
	root := c.root()
	if len(root.contents) > 0 {
		return false
	}
	c.left--
	root.unseen--
	return true
}

// doubt has a change judged anew.
func (p *Plan) recheck(c *change) {
	if !c.toRecheck {
		c.toRecheck = true
		p.toRecheck = append(p.toRecheck, c)
	}
}

// find begins a change that was there before us, or has ended already.
func (p *Plan) find(at SourceRef, now time.Time) {
	content := p.cluster.Content(at)
	defer p.rise(at, now)
	if p.endedWell(at, content) {
		p.begin(at, content, false, nil, now).proven[at] = p.done[at].proven
		return
	}
	c := p.found(at, content, now)
	key, replicable := p.keys.keyOf(at, nil, content)
	written := p.cluster.Written(at)
	if !replicable || written.IsZero() {
		return
	}
	g := p.groupOf(key, written)
	g.attach(c, at)
	if len(g.changes) > 1 {
		return // the copies are known already
	}
	p.groups[groupKey{name: key.name, is: p.keys.hash(content)}] = g // copies of which only binary keys change may follow
	for _, copied := range p.cluster.Copies(at.Source) {
		when, its := p.cluster.Written(copied), p.cluster.Content(copied)
		if p.changes[copied] != nil || p.endedWell(copied, its) || written.Sub(when).Abs() > replicatedWithin {
			continue
		}
		if other, _ := p.keys.keyOf(copied, nil, its); other == key {
			g.attach(p.found(copied, its, now), copied)
		}
	}
}

// endedWell reports whether it is known that a source's change to a content has.
func (p *Plan) endedWell(at SourceRef, content *checksum.Content) bool {
	known, ended := p.done[at]
	return ended && known.content.SameEntries(content)
}

// found begins a change that was there before us. All workloads that it concerns are
// looked at.
func (p *Plan) found(at SourceRef, content *checksum.Content, now time.Time) *change {
	refs := p.cluster.Using(at)
	for _, ref := range refs {
		p.look(ref)
	}
	c := p.begin(at, content, true, refs, now)
	c.written = p.cluster.Written(at)
	return c
}

// Postpone delays the workloads that wait for some sources: the API server has newer
// content of these than we know, and the watch will bring it.
func (p *Plan) Postpone(namespace string, sources []checksum.Source, now time.Time) {
	for _, source := range sources {
		known := p.changes[SourceRef{namespace, source}]
		if known == nil {
			continue
		}
		for _, r := range sortedRecords(maps.Keys(known.root().members)) {
			if w := r.waits; w != nil && slices.Contains(w.sources, source) {
				p.update(r, now, func() { w.granted, w.retry, w.due = time.Time{}, now.Add(postponedFor), now.Add(postponedFor) })
			}
		}
	}
}

// Mark is a moment: what is known of a workload at it counts for the changes that
// began before.
func (p *Plan) Mark() uint64 { return p.begun }

// unproven gives the sources whose changes wait for a workload to be looked at;
// true for those that were found: they want to know of past rollouts as well.
func (r *record) unproven() map[SourceRef]bool {
	var open map[SourceRef]bool
	for _, c := range r.unseen {
		for at := range c.root().contents {
			if open == nil {
				open = map[SourceRef]bool{}
			}
			open[at] = c.root().found
		}
	}
	return open
}

// seen notes that a workload was looked at, for the changes that had begun at a mark:
// one that another worker found meanwhile has to be looked for again.
func (p *Plan) seen(r *record, mark uint64, now time.Time) {
	if len(r.unseen) == 0 && !r.unexamined {
		return
	}
	p.update(r, now, func() {
		var left []*change
		for _, waits := range r.unseen {
			if waits.number > mark {
				left = append(left, waits)
				continue
			}
			waits.left--
			waits.root().unseen--
			if waits.group != nil {
				waits.group.unseen--
			}
			p.recheck(waits.root())
		}
		r.unseen = left
		if r.unexamined {
			r.unexamined = false
			p.unexamined--
		}
	})
}
