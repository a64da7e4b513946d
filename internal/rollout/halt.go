package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// settle ends a rollout: it is healthy with the present content of some sources, or
// cannot tell. What its workload has failed with stays halted until it is healthy
// with that. It reports whether anything has ended.
func (p *Plan) settle(user workload.Ref, healthy bool, carried map[checksum.Source]*checksum.Content) (ended bool) {
	r := p.rollouts[user]
	if r == nil {
		return false
	}
	if healthy {
		maps.DeleteFunc(r.holds, func(c *change, was hold) bool { return c.root().carriedBy(carried, was.places) })
	}
	delete(p.unwell, user)
	for c, proves := range r.evidence {
		c.root().settled++
		if over := healthy && c.root().carriedBy(carried, r.places); r.failed && proves && !over {
			r.holds[c] = hold{r.began, r.places}
		}
	}
	for _, at := range r.places {
		if c := p.changes[at]; healthy && c != nil && carries(carried, at.Source, c.root().contents[at]) {
			if _, counts := r.evidence[c.root()]; counts {
				c.root().proven[at]++
			}
		}
	}
	ended = len(r.evidence) > 0 || len(r.holds) == 0
	if len(r.holds) == 0 {
		delete(p.rollouts, user)
	} else {
		r.failed = true
		clear(r.evidence)
	}
	p.stir()
	return ended
}

// fallen is a rollout that has failed with some contents, and for which nobody waits:
// all others are opted out, or paused. Who waits later may not find it in the
// cluster, as its workload may not tell any more.
type fallen struct {
	rollout  *attempt
	contents map[SourceRef]*checksum.Content
}

// fall puts a failure aside.
func (p *Plan) fall(user workload.Ref, r *attempt) {
	delete(p.rollouts, user)
	f := &fallen{r, map[SourceRef]*checksum.Content{}}
	add := func(c *change, places []SourceRef) {
		for _, at := range places {
			if content, its := c.root().contents[at]; its {
				f.contents[at] = content
			}
		}
	}
	for c, proves := range r.evidence {
		if proves {
			add(c, r.places)
		}
	}
	for c, was := range r.holds {
		add(c, was.places)
	}
	if len(f.contents) > 0 {
		p.fallen[user] = f
	}
}

// rise has the failures with the present content of a source count again: somebody
// waits for what it brought.
func (p *Plan) rise(at SourceRef) {
	c := p.changes[at].root()
	for _, user := range slices.SortedFunc(maps.Keys(p.fallen), workload.Ref.Compare) {
		f := p.fallen[user]
		content, its := f.contents[at]
		if !its || !content.SameEntries(c.contents[at]) {
			continue
		}
		r := p.rollouts[user]
		if r == nil {
			r = f.rollout
			r.evidence, r.holds, r.places = map[*change]bool{}, map[*change]hold{}, nil
			p.rollouts[user] = r
		}
		if r.holds == nil {
			r.holds = map[*change]hold{}
		}
		r.holds[c] = hold{f.rollout.began, append(r.holds[c].places, at)}
		if delete(f.contents, at); len(f.contents) == 0 {
			delete(p.fallen, user)
		}
		p.look(user)
	}
}

// forget drops a workload that is gone, but for its rollout, which is kept for a
// while: it may be made again, with what it has failed with. It returns for how long
// yet.
func (p *Plan) Forget(user workload.Ref, now time.Time) (wait time.Duration) {
	p.seen(user, p.begun)
	delete(p.unwell, user)
	delete(p.fallen, user)
	delete(p.pace.pasts, user)
	delete(p.findings, user)
	r := p.rollouts[user]
	if p.waiting[user] == nil && r == nil && p.missed[user] == nil {
		return 0
	}
	delete(p.waiting, user)
	delete(p.missed, user)
	if r != nil && r.gone.IsZero() {
		r.gone = now
	}
	if r != nil {
		wait = max(0, p.limits.Settle-now.Sub(r.gone))
	}
	if wait == 0 {
		delete(p.rollouts, user)
	}
	p.stir()
	return wait
}

// present notes that there is the workload of a rollout. Where it is another one of its
// name, the rollout goes on where that of its predecessor was.
func (r *attempt) present(uid string, now time.Time) {
	if r.uid != "" && r.uid != uid {
		r.health = health{progressed: now, best: NoExtent()}
	}
	r.uid, r.gone = uid, time.Time{}
}
