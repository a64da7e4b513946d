package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// A workload rolls paceRolls times within paceWindow before it has to wait between
// rolls: twice as long as sources may take to settle, twice as long each time, and
// LongestPause at most.
const (
	paceRolls    = 3
	paceWindow   = 10 * time.Minute
	LongestPause = time.Hour
	// remembered is how long a roll is known of.
	remembered = 24 * time.Hour
)

// pace is how we have rolled a workload, to slow down those whose sources somebody
// writes all the time. It is forgotten at a restart, which costs some rolls.
type pace struct {
	uid   string          // another workload of its name has another one
	rolls [paceRolls]roll // a ring: next is the oldest
	next  int
	pause time.Duration // before the next roll; 0: none
}

// roll is one of them, and what it was for.
type roll struct {
	at      time.Time
	sources []checksum.Source
}

func (p *pace) last() time.Time { return p.rolls[(p.next+paceRolls-1)%paceRolls].at }

// paceOf is the pace of a workload, nil when it has none.
func (p *Plan) paceOf(ref workload.Ref, uid string) *pace {
	if r := p.records[ref]; r != nil && r.pace != nil && r.pace.uid == uid {
		return r.pace
	}
	return nil
}

// rolled notes a roll. The first pause is so long as sources may take to settle, twice.
func (p *pace) rolled(sources []checksum.Source, settle time.Duration, now time.Time) {
	last := p.last()
	p.rolls[p.next] = roll{now, sources}
	p.next = (p.next + 1) % paceRolls
	switch oldest := p.rolls[p.next].at; {
	case p.pause > 0 && now.Sub(last) > max(2*p.pause, paceWindow):
		p.pause = 0 // it has calmed down
	case p.pause > 0:
		p.pause = min(2*p.pause, LongestPause)
	case !oldest.IsZero() && now.Sub(oldest) < paceWindow:
		p.pause = min(2*longestSettle*settle, LongestPause)
	}
}

// slowed is how long the next roll has to wait yet.
func (p *pace) slowed(now time.Time) time.Duration {
	if p.pause == 0 {
		return 0
	}
	return max(0, p.last().Add(p.pause).Sub(now))
}

// hot are the sources for which it has rolled more than once of late, sorted.
func (p *pace) hot() (hot []checksum.Source) {
	times := map[checksum.Source]int{}
	for _, roll := range p.rolls {
		for _, source := range roll.sources {
			if times[source]++; times[source] == 2 {
				hot = append(hot, source)
			}
		}
	}
	slices.SortFunc(hot, checksum.Source.Compare)
	return hot
}

// Rolled notes that a workload was rolled by us for some sources.
func (p *Plan) Rolled(ref workload.Ref, uid string, sources []checksum.Source, now time.Time) {
	r, its := p.of(ref), p.paceOf(ref, uid)
	if its == nil {
		its = &pace{uid: uid}
	}
	its.rolled(sources, p.limits.Settle, now)
	p.update(r, now, func() { r.pace = its })
}

// LastRoll is when we last rolled a workload, zero when that is not known.
func (p *Plan) LastRoll(ref workload.Ref, uid string) time.Time {
	if its := p.paceOf(ref, uid); its != nil {
		return its.last()
	}
	return time.Time{}
}

// Slowed is how long the next roll of a workload has to wait yet for its pace.
func (p *Plan) Slowed(ref workload.Ref, uid string, now time.Time) time.Duration {
	its := p.paceOf(ref, uid)
	if its == nil {
		return 0
	}
	return its.slowed(now)
}

// Hot are the sources for which a workload has rolled more than once of late, sorted.
// tell are those that people are to be told of now: each at most once in LongestPause.
func (p *Plan) Hot(ref workload.Ref, uid string, now time.Time) (hot, tell []checksum.Source) {
	its := p.paceOf(ref, uid)
	if its == nil {
		return nil, nil
	}
	hot = its.hot()
	maps.DeleteFunc(p.told, func(_ SourceRef, when time.Time) bool { return now.Sub(when) >= LongestPause })
	for _, source := range hot {
		at := SourceRef{ref.Namespace, source}
		if _, told := p.told[at]; !told {
			p.told[at] = now
			tell = append(tell, source)
		}
	}
	return hot, tell
}
