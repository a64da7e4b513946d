package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// State is where a workload is on its way to what a source holds.
type State int

// The states. The first four follow from a look at the workload. The others are remembered.
const (
	Unseen   State = iota // it was not looked at since the source was edited
	Current               // it carries what the source holds, since before the edit
	Held                  // it does not carry it: a setting holds it, or it lacks something
	Waiting               // it does not carry it, and waits for its turn
	OnTrial               // it took it, and has not shown how it does
	Standing              // so it did, and stands at a pause of its own, with new pods that are well
	Proven                // it was well with it for its soak
	Failed                // it failed with it, or an undo of it has declined it
	Untold                // it took it, and cannot tell how it does
)

// part is the part of one workload in one open change.
type part struct {
	track  *track
	change *opened
	// untrue tells that it does not carry what the source holds, and shall; unsure that it is not
	// known yet whether it took what it carries by this change.
	untrue, unsure bool
	// asked is since when the workload has had to be read for its source, over later edits too, until
	// it was read.
	asked time.Time
	*take // nil: it took nothing
}

// take is content of a source that a workload took, and what became of that. Where the
// source holds other content by now, a take that is open carries over to that: its workload
// goes first.
type take struct {
	content checksum.Fingerprint
	// ahead is not 0 if the watch had not delivered the content when the workload took it: it is then
	// the number of the change that was open, and content is not set.
	ahead uint64
	// returned reports that the workload took, some time before, what the source holds again now, and has
	// not taken it again yet.
	returned bool
	state    State     // OnTrial, or one of those after it
	began    time.Time // when it took it, or declined it
	since    time.Time // since when it is in its state
	why      *Failure  // it failed, or an undo has declined the content
	// broken tells that the workload has failed with older content, and was not well since.
	broken bool
	// lacked reports that the workload was missing replicas when its turn came. down reports that it
	// had none for long, or cannot report its health: once another workload has proven the content,
	// its failure halts nothing.
	lacked, down bool
	declined     bool // by an undo
	// supersededAt is when the source first ceased to hold the content; zero: never.
	supersededAt time.Time
	resumed      bool // somebody has said that its failure halts nothing
	// first tells that it was one of the first that took the content, level how many replicas were
	// available then, and fallen how often it fell since it had proven it.
	first  bool
	level  int32
	fallen int
	// afterUnproven reports that the workload had yet to prove what it carried before; stays, that it does not go back from
	// this content.
	afterUnproven, stays bool
}

// open reports whether it is not known yet that the workload is well: it holds the room of
// later content too.
func (t *take) open() bool {
	return t != nil && !t.declined && !t.resumed && (t.state == OnTrial || t.fell())
}

// fell reports whether the workload has failed, with this content or older one, and was not well
// since.
func (t *take) fell() bool { return t.state == Failed || t.broken }

// wentBack reports whether the workload has failed with the content, and went back by itself.
func (t *take) wentBack() bool { return t != nil && t.why != nil && t.why.Returned }

// enters changes the state.
func (t *take) enters(state State, now time.Time) {
	if t.state != state {
		t.state, t.since = state, now
	}
}

// takes has the workload take what the source holds, which it has yet to show how it does with.
// That it failed before stays true meanwhile.
func (p *part) takes(began, now time.Time) {
	p.take = &take{content: p.change.content, state: OnTrial, began: began, since: now, broken: p.open() && p.fell(), afterUnproven: p.unproven(), first: p.change.taken < firstWatched}
	p.change.taken++
}

// unproven reports whether the workload has yet to prove what it took, or has failed with it, whatever people said to that.
func (p *part) unproven() bool {
	return p.take != nil && !p.declined && !p.wentBack() && (p.take.state == OnTrial || p.take.state == Standing || p.fell())
}

// takesUnknown has the workload take content that the watch of the source has not delivered yet. Turns of
// others that use the source are taken back, if they were not taken yet: the webhook would give them that
// content too.
func (p *part) takesUnknown(now time.Time) {
	c := p.change
	p.take = &take{ahead: c.number, state: OnTrial, began: now, since: now, broken: p.open() && p.fell(), afterUnproven: p.unproven()}
	for _, other := range c.parts {
		if t := other.track; t != p.track && t.turn != nil && !t.uncertain {
			t.turn = nil
		}
	}
}

// isAhead reports whether the workload carries content that is newer than what the source is known to
// hold. A stamp that stays unknown for the deadline does not count any more.
func (p *part) isAhead(limits *Limits, now time.Time) bool {
	return p.take != nil && p.ahead == p.change.number && now.Sub(p.began) < limits.RolloutDeadline
}

// proves notes that the workload was well for its soak.
func (t *take) proves(now time.Time) {
	t.broken, t.why = false, nil
	t.enters(Proven, now)
}

// fails notes that the workload has failed.
func (t *take) fails(began time.Time, why *Failure, now time.Time) {
	t.began, t.why = began, why
	t.enters(Failed, now)
}

// track is what is remembered of one workload, and how it was at its last look.
type track struct {
	ref   workload.Ref
	facts *Facts    // nil: it was not looked at yet
	gone  time.Time // since when it is deleted; zero: it is there
	parts []*part   // one in each open change of its sources

	// hold is what keeps it from waiting for a turn. due is when its sources have settled.
	hold       reason.Reason
	due, since time.Time
	class      class
	tries      int
	retry      time.Time // not before
	uncertain  bool      // it is not known whether its roll came
	turn       *turn     // that has come, and was not taken yet

	trial   *trial // the rollout that is watched
	past    bool   // it is not known yet whether it rolls by a change that is over
	last    bool   // nor whether it is not well by its last rollout, which an edit has begun
	needs   Needs
	rereads time.Time // of pods that show no fall; not before

	back *wayBack                                 // it has failed, and is to go back
	left map[checksum.Source]checksum.Fingerprint // what it has gone back from, by source

	pace    *pace
	finding *finding

	sums
}

// sums are what the parts of a workload say together, in one cycle: each may have thousands.
type sums struct {
	mends   bool // it has yet to show that it is well with older content
	blocked bool // it waits for something that people know to be halted
	late    bool // it has waited for as long as any trial lasts, such as for a workload that waits for it
	stopped bool // a change halts for which it waits, so that it waits for that and not for its turn
	fits    bool // all its changes let it roll, as of fitted
	fitted  int  // how many turns there had been; 0: it is not known
}

// turn is one that has come.
type turn struct {
	at           time.Time
	level        int32
	lacked, down bool
	mute         bool // it holds no slot
}

// turnAt is the turn of a workload as it is now, that came at some moment.
func (t *track) turnAt(at time.Time) *turn {
	its := &turn{at: at, level: t.facts.Status.Available, lacked: t.lacks(), down: t.class == down || t.class == untells, mute: t.mute()}
	if t.class == down {
		its.level = 0 // what it has for a moment
	}
	return its
}

// state is where the workload is on the way to what the source holds, and over whether that is
// with older content of the source.
func (p *part) state() (state State, over bool) {
	switch {
	case p.isCurrent():
		return p.take.state, false
	case p.open():
		return p.take.state, true
	}
	return p.waits(), false
}

// isCurrent reports whether what the workload took is what the source holds.
func (p *part) isCurrent() bool {
	return p.take != nil && p.ahead == 0 && !p.returned && p.content == p.change.content
}

// over reports whether the workload is open with other content of the source.
func (p *part) over() bool { return p.open() && !p.isCurrent() }

// suspect reports whether the workload is not well, and waits for a change that was there before
// us: it may be on trial with older content, which nobody has judged.
func (p *part) suspect() bool {
	status := &p.track.facts.Status
	return p.change.found && p.track.class == lacking && !status.PerNode && status.Phase != workload.Failed
}

// maybeDown reports whether a suspect has nothing available, and it is not known yet for how long.
func (p *part) maybeDown(now time.Time) bool {
	f := p.track.facts
	return p.suspect() && f.Status.Wanted > 0 && f.Status.Available == 0 && !f.empty(now)
}

// waits is the state of a workload as a look shows it, whatever it took before.
func (p *part) waits() State {
	switch t := p.track; {
	case !t.gone.IsZero():
		return Current
	case t.facts == nil || t.facts.Mark < p.change.number || p.unsure:
		return Unseen
	case !p.untrue:
		return Current
	case t.hold != reason.NoReason:
		return Held
	}
	return Waiting
}

// mayTake reports whether nothing but its turn and its pace keeps the workload from newer content,
// as far as is known: else it is not waited for.
func (p *part) mayTake() bool {
	switch p.waits() {
	case Unseen:
		return true
	case Waiting: // not for what others halt, and not for long
		t := p.track
		return !t.blocked && !t.late && t.tries < refusedForLong && (!t.uncertain || t.turn != nil)
	case Held:
		return p.track.hold == reason.Paced
	}
	return false
}

// refusedForLong is after how many tries, in ten minutes, others do not wait any more for one whose
// patches are refused.
const refusedForLong = 18

// followed reports whether another one took newer content than this one, and has not shown either how
// it does: that goes first, with the next.
func (p *part) followed() bool {
	return slices.ContainsFunc(p.change.parts, func(other *part) bool {
		return other.over() && other.content != p.content && other.began.After(p.began) && other.mayTake()
	})
}

// some reports whether something is true of a part of a workload.
func (t *track) some(is func(*part) bool) bool { return slices.ContainsFunc(t.parts, is) }

// broken reports whether a workload has failed with what a source held, and was not well since.
func (t *track) broken() bool { return t.some(func(p *part) bool { return p.open() && p.fell() }) }

// open reports whether a workload has yet to show that it is well with anything that it took.
func (t *track) open() bool { return t.some(func(p *part) bool { return p.open() }) }

// halts reports whether a workload has failed with something.
func (t *track) halts() bool {
	return t.some(func(p *part) bool { return p.take != nil && p.take.state == Failed && !p.declined })
}

// rolls reports whether a workload holds a slot: its turn has come, or its pods are replaced,
// for the deadline at most.
func (t *track) rolls(limits *Limits, now time.Time) bool {
	if t.turn != nil && !t.turn.mute {
		return true
	}
	r := t.trial
	return r != nil && !r.failed && !r.standing && !r.fallen && r.health.well.IsZero() && now.Before(r.slotEnds(limits))
}

// slotEnds is until when a rollout holds a slot at most.
func (r *trial) slotEnds(limits *Limits) time.Time { return r.began.Add(limits.RolloutDeadline) }

// needsSlot reports whether a roll of a workload is one more: what is broken, or rolls already,
// takes newer content without.
func (t *track) needsSlot(limits *Limits, now time.Time) bool {
	return !t.mute() && !t.rolls(limits, now) && !t.mends
}

// idle reports whether nothing is known of a workload that has to be kept.
func (t *track) idle(now time.Time) bool {
	return len(t.parts) == 0 && t.trial == nil && t.turn == nil && t.back == nil && !t.past && !t.last && !t.uncertain &&
		(t.pace == nil || now.Sub(t.pace.last()) > remembered) && (t.finding == nil || now.Sub(t.finding.when) >= findingFor)
}
