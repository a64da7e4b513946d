package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// What keeps a halt. It ends when the source changes again, when the workload that
// has failed is healthy with what the change brought, or is deleted, and when somebody
// resumes. Nothing else ends it, whatever becomes of that workload: one that an undo has
// made healthy with older content is not healthy with what the change brought.

// fail notes that a rollout has failed, with what is on record.
func (p *Plan) fail(r *record, why string, records checksum.Records, now time.Time) {
	a := r.attempt
	p.update(r, now, func() {
		if a.state, a.why, a.mended = broken, why, false; a.down {
			r.unhealthy = &records
		}
	})
	for c, proves := range a.counts {
		if !proves {
			c.root().broken++
			p.settled(c.root(), false) // no workload waits for it to be healthy
		}
	}
	if len(r.unseen) == 0 && !r.holdsUp() {
		p.fall(r, now) // it halts nothing
	}
}

// settled counts a rollout that is over, and holds no room any more, well or not, and whether it
// gives those room that lacked replicas as it did.
func (p *Plan) settled(c *change, gives bool) {
	lacked := 0
	if gives {
		lacked = 1
	}
	c.settled, c.lacked = c.settled+1, c.lacked+lacked
	for _, g := range c.groups {
		g.settled, g.lacked = g.settled+1, g.lacked+lacked
	}
	p.recheck(c)
}

// prove counts a workload that became healthy with a source.
func (p *Plan) prove(at SourceRef, when time.Time) {
	c := p.changes[at]
	if c == nil {
		return
	}
	c = c.root()
	if _, proven := c.progress(at, false); proven == 0 && p.limits.FirstSoak > 0 {
		p.hasten(c, at)
	}
	c.proven[at]++
	if g := c.groups[at]; g != nil {
		if g.proven++; when.After(g.proved) {
			g.proved = when
		}
	}
	p.recheck(c)
	p.requeue()
}

// settle ends a rollout: it is healthy with the present content of some sources, or
// cannot tell. What its workload has failed with stays halted until it is healthy
// with that. It reports whether anything has ended.
func (p *Plan) settle(r *record, healthy bool, f *Facts, now time.Time) (ended bool) {
	a := r.attempt
	counts, failed, proved := maps.Clone(a.counts), a.failed(), now
	if a.found { // its pods may have been made anew since
		if proved = f.Status.Current; proved.IsZero() {
			proved = a.began
		}
		proved = proved.Add(a.health.soak)
	}
	for _, at := range a.sources {
		if c := p.changes[at]; healthy && c != nil && f.carries(at.Source, c.root().contents[at]) {
			if countsFor(counts, c.root()) {
				p.prove(at, proved)
			}
		}
	}
	p.update(r, now, func() {
		if healthy {
			p.heal(r, f)
			maps.DeleteFunc(a.holds, func(c *change, was hold) bool { return c.root().carriedBy(f, was.sources) })
		}
		r.unhealthy = nil
		for c, proves := range counts {
			if over := healthy && c.root().carriedBy(f, a.sources); failed && proves && !over {
				a.holds[c] = hold{a.began, a.sources}
			}
		}
		ended = len(counts) > 0 || len(a.holds) == 0
		if len(a.holds) == 0 {
			r.attempt = nil
			return
		}
		a.state, a.mended = broken, healthy
		clear(a.counts)
	})
	for c := range counts {
		p.settled(c.root(), healthy && a.lacked)
	}
	return ended
}

func countsFor(counts map[*change]bool, root *change) bool {
	for c := range counts {
		if c.root() == root {
			return true
		}
	}
	return false
}

// fallen is a rollout that has failed with some contents while no workload waits: all
// others are opted out, or paused. Workloads that start waiting later may not find the
// failure in the cluster, as the failed workload may not show it any more.
type fallen struct {
	attempt *attempt
	with    map[SourceRef]failure
}

// failure is a content that a rollout has failed with, and when that began.
type failure struct {
	content *checksum.Content
	began   time.Time
}

// fall puts a failure aside, beside what the workload has failed with before.
func (p *Plan) fall(r *record, now time.Time) {
	a := r.attempt
	f := &fallen{a, map[SourceRef]failure{}}
	if r.fallen != nil {
		maps.Copy(f.with, r.fallen.with)
	}
	add := func(c *change, sources []SourceRef, began time.Time) {
		c.root().failed = true
		for _, at := range sources {
			if content, its := c.root().contents[at]; its {
				f.with[at] = failure{content, began}
			}
		}
	}
	for c, proves := range a.counts {
		if proves {
			add(c, a.sources, a.began)
		}
	}
	for c, was := range a.holds {
		add(c, was.sources, was.began)
	}
	maps.DeleteFunc(f.with, func(at SourceRef, was failure) bool { return !p.cluster.Content(at).SameEntries(was.content) })
	p.drop(r)
	p.update(r, now, func() {
		if r.attempt = nil; len(f.with) > 0 {
			r.fallen = f
		}
	})
	for at := range f.with {
		if p.fell[at] == nil {
			p.fell[at] = map[*record]struct{}{}
		}
		p.fell[at][r] = struct{}{}
	}
}

// heal forgets what a workload has failed with of the sources with which it is healthy now: with
// the same, or with what they hold since.
func (p *Plan) heal(r *record, f *Facts) {
	if r.fallen == nil {
		return
	}
	for at, was := range r.fallen.with {
		if f.carries(at.Source, was.content) || f.carries(at.Source, p.cluster.Content(at)) {
			p.forgive(at, r)
			delete(r.fallen.with, at)
		}
	}
	if len(r.fallen.with) == 0 {
		r.fallen = nil
	}
}

// drop forgets what a workload has failed with.
func (p *Plan) drop(r *record) {
	if r.fallen != nil {
		for at := range r.fallen.with {
			p.forgive(at, r)
		}
	}
	r.fallen = nil
}

// forgive forgets that a workload has failed with a source.
func (p *Plan) forgive(at SourceRef, r *record) {
	if delete(p.fell[at], r); len(p.fell[at]) == 0 {
		delete(p.fell, at)
	}
}

// rise has the failures with the present content of a source count again: somebody
// waits for what it brought.
func (p *Plan) rise(at SourceRef, now time.Time) {
	c := p.changes[at].root()
	for _, r := range sortedRecords(maps.Keys(p.fell[at])) {
		f := r.fallen
		if f != nil && !f.with[at].content.SameEntries(c.contents[at]) {
			continue
		}
		if p.forgive(at, r); f == nil {
			continue
		}
		p.update(r, now, func() {
			if r.attempt == nil {
				r.attempt = f.attempt
				r.attempt.counts, r.attempt.holds, r.attempt.sources = map[*change]bool{}, map[*change]hold{}, nil
			}
			r.attempt.holds[c] = hold{f.with[at].began, append(r.attempt.holds[c].sources, at)}
			if delete(f.with, at); len(f.with) == 0 {
				r.fallen = nil
			}
		})
		p.look(r.ref)
	}
}

// Forget drops a workload that is gone, but for its rollout and what an undo of it has
// declined. These are kept for a while: it may be made again, with what it has failed with
// or declined. It returns for how long yet.
func (p *Plan) Forget(ref workload.Ref, now time.Time) (wait time.Duration) {
	r := p.records[ref]
	if r == nil {
		return 0
	}
	p.seen(r, p.begun, now)
	p.drop(r)
	p.update(r, now, func() {
		p.stopWaiting(r)
		r.unhealthy, r.pace, r.finding = nil, nil, nil
		if r.attempt == nil && len(r.declined) == 0 {
			return
		}
		if r.gone.IsZero() {
			r.gone = now
		}
		if wait = max(0, p.limits.Settle-now.Sub(r.gone)); wait == 0 {
			p.declare(r, nil)
			r.attempt = nil
		}
	})
	return wait
}

// present notes that there is the workload of a record. Where it is another one of its
// name, the rollout goes on where that of its predecessor was.
func (r *record) present(uid string, now time.Time) {
	r.gone = time.Time{}
	a := r.attempt
	if a == nil {
		return
	}
	if a.uid != "" && a.uid != uid {
		a.health = health{progressed: now, best: NoExtent()}
	}
	a.uid = uid
}

// remember keeps that a change has ended well, for workloads that start waiting later.
// Unless it ended well, the change is found anew for them.
func (p *Plan) remember(at SourceRef, content *checksum.Content, c *change, well bool) {
	if !well || c.proven[at] == 0 {
		delete(p.done, at)
		return
	}
	if len(p.done) >= mostEnded {
		clear(p.done) // they prove themselves again
	}
	p.done[at] = ended{content, c.proven[at]}
}

// inherit has a workload that has failed with a source, and carries its present content
// all the same, halt what has changed since: what it reads is what it failed with.
func (p *Plan) inherit(r *record, f *Facts, now time.Time) {
	a := r.attempt
	for at := range r.unproven() {
		c := p.changes[at]
		if c == nil || !f.carries(at.Source, c.root().contents[at]) {
			continue
		}
		its := !a.down && slices.Contains(a.sources, at)
		for _, was := range a.holds {
			its = its || slices.Contains(was.sources, at)
		}
		if _, known := a.holds[c.root()]; its && !known && !countsFor(a.counts, c.root()) {
			p.update(r, now, func() { a.holds[c.root()] = hold{a.began, []SourceRef{at}} })
		}
	}
}
