package rollout

import (
	"maps"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Stands notes that a workload whose turn has come stands in line for a permit: it does not lose
// its turn by that.
func (p *Planner) Stands(ref workload.Ref, now time.Time) {
	if t := p.known(ref); t.turn != nil {
		t.turn.at = now
	}
}

// Sent notes that a workload whose turn has come is about to be patched: from then on until a look,
// or Refused, it is not known whether it rolls.
func (p *Planner) Sent(ref workload.Ref) {
	if t := p.known(ref); t.turn != nil {
		t.uncertain = true
	}
}

// Panicked is about a workload at which a look panicked. A turn that had come, and was not taken, is
// given back. After RolloutDeadline without progress its rollout has failed, as nobody can know
// whether it is healthy.
func (p *Planner) Panicked(ref workload.Ref, now time.Time) {
	why := &Failure{Cause: Unexplained, Verdict: "configstamp fails to look at it (a panic), so whether it is healthy is not known"}
	t := p.known(ref)
	switch r := t.trial; {
	case t.turn != nil && !t.uncertain:
		t.turn = nil
		t.retriesAfter(LastRetry, now)
	case t.turn != nil && now.Sub(t.turn.at) >= max(p.limits.RolloutDeadline-lookWithin, p.limits.RolloutDeadline/2): // before the turn ends
		for _, its := range t.parts {
			if its.waits() == Waiting {
				its.takes(t.turn.at, now)
				its.fails(t.turn.at, why, now)
			}
		}
		t.turn, t.uncertain = nil, false
	case r != nil && !r.failed && now.Sub(r.progressed()) >= p.limits.RolloutDeadline:
		r.failed = true
		t.failTakes(why, now)
	}
}

// LastRoll is when we last rolled a workload, zero when that is not known.
func (p *Planner) LastRoll(ref workload.Ref, uid string) time.Time {
	return p.known(ref).paceOf(uid).last()
}

// Refused notes that what was sent did not come, or, unless that is certain, that it is not known
// whether it came. The workload is tried again after a while, which grows up to most.
func (p *Planner) Refused(ref workload.Ref, certain bool, most time.Duration, now time.Time) {
	t := p.known(ref)
	if t.uncertain = !certain; certain {
		t.turn = nil
	}
	t.retriesAfter(most, now)
}

// retriesAfter has a workload tried again after a while, twice as long each time, up to most.
func (t *track) retriesAfter(most time.Duration, now time.Time) {
	after := min(FirstRetry<<min(t.tries, 20), LastRetry, most)
	t.retry = now.Add(after)
	t.tries++
}

// Uncertain reports whether it is not known if what was sent has come. Then a look has to read
// the workload anew.
func (p *Planner) Uncertain(ref workload.Ref) bool { return p.known(ref).uncertain }

// Again reports whether a workload is to be tried again.
func (p *Planner) Again(ref workload.Ref) bool {
	t := p.known(ref)
	return t.uncertain || t.tries > 0 && !t.since.IsZero()
}

// Rolled notes that a workload was rolled by us for some sources.
func (p *Planner) Rolled(ref workload.Ref, uid string, sources []checksum.Source, now time.Time) {
	t := p.track(ref)
	t.pace = t.paceOf(uid)
	t.pace.rolled(sources, p.limits.Settle, now)
}

// Hot are the sources for which a workload has rolled more than once of late, sorted. tell are
// those that people are to be told of now: each at most once in LongestPause.
func (p *Planner) Hot(ref workload.Ref, now time.Time) (hot, tell []checksum.Source) {
	if t := p.known(ref); t.pace != nil {
		hot = t.pace.hot()
	}
	maps.DeleteFunc(p.warned, func(_ SourceRef, when time.Time) bool { return now.Sub(when) >= LongestPause })
	for _, source := range hot {
		at := SourceRef{ref.Namespace, source}
		if _, told := p.warned[at]; !told {
			p.warned[at] = now
			tell = append(tell, source)
		}
	}
	return hot, tell
}
