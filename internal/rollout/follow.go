package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Followed looks after the rollout of a workload, if it has one: it ends it when it is
// healthy, and halts its changes when it has failed.
func (p *Plan) Followed(user workload.Ref, f *Facts, now time.Time) Verdict {
	if p.Off() {
		return Verdict{}
	}
	r := p.rollouts[user]
	if r != nil {
		r.present(f.UID, now)
	}
	blind := f.Pods != nil && (f.Pods.Access == Forbidden || f.Pods.Access == Unread)
	if r == nil || r.found {
		var need Verdict
		if r, need = p.find(user, f, r, now); need.Do != Nothing || need.Retry {
			need.Blind = blind
			return need
		}
	} else {
		p.testify(user, r, f)
	}
	if r == nil {
		p.seen(user, f.Mark)
		return Verdict{Blind: blind}
	}
	r.uid = f.UID
	how, why, verdict := r.judge(f, &p.limits, now)
	if verdict.Do != Nothing || verdict.Retry {
		verdict.Blind = blind && f.Pods.Access == Forbidden
		return verdict
	}
	defer p.seen(user, f.Mark) // its failure is known by then
	verdict.Blind = blind
	if how == mute && r.failed {
		how = failed // nothing says that it would be healthy
	}
	switch how {
	case healthy, mute:
		if p.settle(user, how == healthy, f.Carried) {
			verdict.Ours = true
			if verdict.Ended = checksum.CannotTell; how == healthy {
				verdict.Ended = checksum.Healthy
			}
		}
		return verdict
	case failed:
		if !r.failed {
			p.halt(user, why, f.Records)
			if verdict.Ours = !r.found || len(r.places) > 0; verdict.Ours { // what somebody else rolls is not ours to tell of
				verdict.Ended, verdict.Failed = checksum.RolloutFailed, why
			}
		}
	case underWay:
	}
	verdict.Wait = p.limits.lookEvery()
	if r.failed {
		verdict.Wait *= failedLooks
	}
	if well := r.health.well; !well.IsZero() {
		verdict.Wait = min(verdict.Wait, max(p.limits.soak(f)-now.Sub(well), soonestLook))
	}
	return verdict
}

// testify has a rollout of ours count for the changes of sources that it has taken
// since it was granted, and that came to be known afterwards.
func (p *Plan) testify(user workload.Ref, r *attempt, f *Facts) {
	for at := range p.unproven(user) {
		c := p.changes[at]
		if c == nil || !slices.Contains(r.rolled, at.Source) || !f.carries(at.Source, c.root().contents[at]) {
			continue
		}
		if _, counts := r.evidence[c.root()]; !counts {
			r.evidence[c.root()] = r.proves()
			r.places = append(r.places, at)
			p.stir()
		}
	}
}

// Follows reports whether a workload has a rollout that is followed.
func (p *Plan) Follows(user workload.Ref) bool { return p.rollouts[user] != nil }

// Concerned reports whether anything depends on what a workload carries: it has a
// rollout, or a change waits for it to be looked at.
func (p *Plan) Concerned(user workload.Ref) bool {
	return p.rollouts[user] != nil || len(p.unseen[user]) > 0
}
