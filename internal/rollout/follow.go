package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Followed looks after the rollout of a workload, if it has one: it ends it when it is
// healthy, and halts its changes when it has failed.
func (p *Plan) Followed(ref workload.Ref, f *Facts, now time.Time) Verdict {
	if p.Off() {
		return Verdict{}
	}
	p.declares(ref, f, now)
	r := p.records[ref]
	if r == nil {
		return Verdict{}
	}
	r.present(f.UID, now)
	if r.attempt != nil && r.attempt == r.missed { // what is known of it is of before
		p.seen(r, f.Mark, now)
		return Verdict{}
	}
	blind := f.Pods != nil && (f.Pods.Access == Forbidden || f.Pods.Access == Unread)
	if r.attempt == nil || r.attempt.found {
		if need := p.findAttempt(r, f, now); need.Do != Nothing || need.Retry {
			need.Blind = blind
			return need
		}
	} else {
		p.countToo(r, f, now)
	}
	if r.attempt == nil {
		p.seen(r, f.Mark, now)
		return Verdict{Blind: blind}
	}
	r.attempt.uid, r.attempt.health.soak = f.UID, p.soak(r, f)
	r.attempt.trial.failed, r.attempt.standing = r.attempt.failed(), r.attempt.state == suspended
	how, why, verdict := r.attempt.judge(f, &p.limits, now)
	if verdict.Do != Nothing || verdict.Retry {
		verdict.Blind = blind && f.Pods.Access == Forbidden
		return verdict
	}
	verdict.Blind = blind
	p.conclude(r, f, how, why, &verdict, now)
	if r.attempt != nil && r.attempt.failed() {
		p.inherit(r, f, now)
	}
	p.seen(r, f.Mark, now) // its failure is known by now
	return verdict
}

// conclude acts on how a rollout is.
func (p *Plan) conclude(r *record, f *Facts, how condition, why string, verdict *Verdict, now time.Time) {
	a := r.attempt
	if how == untold && a.failed() {
		how = failed // nothing says that it would be healthy
	}
	if h := &a.health; how == untold && h.trouble != "" && f.Status.Waits != "" && now.Sub(h.troubled) >= p.limits.CrashDeadline/looksDuring {
		how, why = failed, a.health.trouble+"; since then "+f.Status.Waits // somebody has scaled it to nothing, or paused it
	}
	switch how {
	case healthy, untold:
		if p.settle(r, how == healthy, f, now) {
			if verdict.Ended = checksum.CannotTell; how == healthy {
				verdict.Ended = checksum.Healthy
			}
		}
		return
	case failed:
		if !a.failed() {
			p.fail(r, why, f.Records, now)
			if !a.found || len(a.sources) > 0 { // what somebody else rolls is not ours to tell of
				verdict.Ended, verdict.Failed = checksum.RolloutFailed, why
			}
		}
	case underWay:
		p.goesOn(r, f, now)
	}
	if r.attempt == nil {
		return
	}
	if verdict.Wait = p.limits.lookEvery(); a.failed() {
		verdict.Wait *= failedLooks
	}
	if a := r.attempt; !a.health.well.IsZero() && a.state != suspended {
		verdict.Wait = min(verdict.Wait, max(a.health.soak-a.health.wellFor(now), soonestLook))
	}
}

// goesOn notes that a rollout goes on: it makes progress, or stands at a pause of its
// own.
func (p *Plan) goesOn(r *record, f *Facts, now time.Time) {
	a, is := r.attempt, rolling
	switch {
	case a.failed():
		return
	case a.stands(f, now):
		is = suspended
	case a.state == lapsed && now.Sub(a.progressed()) >= p.limits.RolloutDeadline:
		is = lapsed
	}
	if a.state != is {
		p.update(r, now, func() { a.state = is })
	}
}

// countToo has a rollout of ours count for the changes of sources that it has taken
// since it was granted, and that came to be known afterwards.
func (p *Plan) countToo(r *record, f *Facts, now time.Time) {
	a := r.attempt
	for at := range r.unproven() {
		c := p.changes[at]
		if c == nil || !slices.Contains(a.rolled, at.Source) || !f.carries(at.Source, c.root().contents[at]) || countsFor(a.counts, c.root()) {
			continue
		}
		p.update(r, now, func() {
			a.counts[c.root()] = !a.down
			a.sources = append(a.sources, at)
		})
	}
}

// Follows reports whether a workload has a rollout that is followed.
func (p *Plan) Follows(ref workload.Ref) bool {
	r := p.records[ref]
	return r != nil && r.attempt != nil
}

// Concerned reports whether anything depends on what a workload carries: it has a
// rollout, it has declined something, or a change waits for it to be looked at.
func (p *Plan) Concerned(ref workload.Ref) bool {
	r := p.records[ref]
	return r != nil && (r.attempt != nil || len(r.unseen) > 0 || len(r.declined) > 0)
}
