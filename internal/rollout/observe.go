package rollout

import (
	"math"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// observe notes what a look shows that a workload has taken, or declined. isNew tells that it is
// the first look of this leader.
func (p *Planner) observe(t *track, f *Facts, isNew bool, now time.Time) {
	was := t.before(f, now)
	rolled := was != nil && RolledBetween(was.Records, f.Records)
	if t.uncertain && !rolled {
		t.turn = nil
	}
	t.uncertain = false
	back := t.wentBack(f, now)
	var took []*take
	uses, untrue := setOf(f.Sources), setOf(f.Review.Untrue)
	t.leaves(func(its *part) bool { // its template names others now; what it failed with stays
		return !uses[its.change.at.Source] && (!its.open() || its.take.state != Failed)
	})
	for _, source := range f.Sources {
		at := SourceRef{t.ref.Namespace, source}
		c := p.changes[at]
		unknown := f.tookUnknown(was, source, c)
		if c == nil && unknown {
			newest := f.Mark == p.number
			if c = p.found(at, p.cluster.Content(at), now); newest { // what is found now was known
				f.Mark = p.number
			}
		}
		if c == nil {
			continue
		}
		its := t.join(c)
		waited := its.untrue
		its.untrue = untrue[source]
		switch declined, declines := f.Declined[source]; {
		case declines && declined == c.content:
			p.declines(its, isNew, back, now)
		case !f.carries(source, c.content):
			if its.unsure = false; its.take != nil && its.declined {
				its.take = nil
			}
			failed := its.isCurrent() && its.take.state == Failed // which stays, whatever it carries
			if unknown && !failed && (waited || was.Mark >= c.number || c.number == p.number) {
				its.takesUnknown(now)
				took = append(took, its.take)
			}
		case its.isCurrent() && !its.declined:
		case its.wentBack() && !rolled && f.Status.Phase == workload.RolledOut: // to this, which was put back since
			its.take = nil
		case its.take != nil || rolled:
			lacked, kept, home := its.take != nil && its.lacked, its.take != nil && its.returned && !rolled, its.wentBack() && !rolled
			if its.takes(now, now); kept {
				p.keeps(t, f, its, now)
			} else {
				took = append(took, its.take)
			}
			its.lacked, its.stays = lacked, home // from what it went back to, it does not go back
		case was == nil || was.Mark < c.number:
			its.unsure = true
		}
	}
	if len(took) > 0 {
		p.begins(t, f, took, now)
	}
}

// declines notes that a workload declines what its source holds: an undo of it, or its own return, has sent that back.
func (p *Planner) declines(its *part, isNew, back bool, now time.Time) {
	c := its.change
	if its.take != nil && its.declined && its.content == c.content {
		return
	}
	began, why := now, &Failure{}
	if isNew {
		began = p.cluster.Written(c.at) // somebody who has resumed since may have done so before the undo, or after it
	}
	if back && its.take != nil && its.why != nil { // a return declines all contents with which the workload has failed
		failed := *its.why
		failed.Returned, why = true, &failed
	}
	its.take = &take{content: c.content, state: Failed, began: began, since: now, declined: true, why: why}
}

// before returns how a workload was at its last look, nil if that was another one of its name: its trial
// goes on.
func (t *track) before(f *Facts, now time.Time) *Facts {
	t.gone = time.Time{}
	if t.facts == nil || t.facts.UID == f.UID {
		return t.facts
	}
	if r := t.trial; r != nil { // its pods may be the same
		was := &r.health
		r.health = health{progressed: now, best: NoExtent(), doubt: was.doubt, outdated: was.outdated, unlisted: was.unlisted, stale: was.stale, current: was.current}
	}
	return nil
}

// tookUnknown reports whether a workload has a new stamp of a source since it was read last, and not of what
// the source is known to hold: the webhook reads it live, and the watch may be late. c is the open change of
// the source, or nil.
func (f *Facts) tookUnknown(was *Facts, source checksum.Source, c *opened) bool {
	key := checksum.StampKey(source)
	content, carried := f.Carried[source]
	_, declined := f.Declined[source]
	known := carried && (c == nil || content == c.content)
	stamp := f.Records.Stamps[key]
	return was != nil && !known && !declined && stamp != "" && stamp != was.Records.Stamps[key]
}

func setOf(sources []checksum.Source) map[checksum.Source]bool {
	set := make(map[checksum.Source]bool, len(sources))
	for _, source := range sources {
		set[source] = true
	}
	return set
}

// begins has the rollout of a workload watched that took some contents: by its turn, or as
// anybody's admission stamped it. One that has not shown how it does with older content goes on.
func (p *Planner) begins(t *track, f *Facts, took []*take, now time.Time) {
	was, by := t.trial, t.turn
	if by == nil { // others rolled it
		by = &turn{level: f.Status.Available}
	}
	r, lacked := &trial{began: now, level: by.level}, by.lacked
	if was != nil {
		if r.level = max(r.level, was.level); !was.failed {
			r.unproven = was.unproven
			lacked = t.some(func(its *part) bool { return its.take != nil && its.lacked }) // what it lacks now may be by its own rollout
		}
		r.health.selector = was.health.selector
		if !was.failed && was.health.well.IsZero() { // progress is over all contents
			r.health.progressed, r.health.lastWell = was.progressed(), was.health.lastWell
			r.health.best = Extent{most: math.MaxInt32, missing: f.Status.Wanted}
			r.health.looks.begin(r, &p.limits)
		}
	}
	r.health.status = f.Status.StatusHash
	for _, its := range took {
		its.lacked, its.down, its.level = lacked, by.down, r.level
	}
	t.trial, t.turn, t.tries, t.retry, t.needs, t.past, t.last = r, nil, 0, time.Time{}, Needs{}, false, false
}
