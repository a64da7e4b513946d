package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
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

// paceOf is how we have rolled a workload, or not at all.
func (t *track) paceOf(uid string) *pace {
	if t.pace == nil || t.pace.uid != uid {
		return &pace{uid: uid}
	}
	return t.pace
}

func (p *pace) last() time.Time { return p.rolls[(p.next+paceRolls-1)%paceRolls].at }

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
