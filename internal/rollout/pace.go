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
	// remembered is how long a roll is known of, where many workloads roll.
	remembered = 24 * time.Hour
)

// pace knows when we last rolled workloads, and slows down those whose sources
// somebody writes all the time. It is forgotten at a restart, which costs some rolls.
type pace struct {
	settle time.Duration // the longest
	pasts  map[workload.Ref]*past
	told   map[SourceRef]time.Time // of which sources people were told
}

// past is how a workload has rolled.
type past struct {
	uid   string          // another workload of its name has another past
	rolls [paceRolls]roll // a ring: next is the oldest
	next  int
	pause time.Duration // before the next roll; 0: none
}

// roll is one of them, and what it was for.
type roll struct {
	at      time.Time
	sources []checksum.Source
}

func newPace(settle time.Duration) pace {
	return pace{settle: longestSettle * settle, pasts: map[workload.Ref]*past{}, told: map[SourceRef]time.Time{}}
}

// of is the past of a workload, nil when it has none.
func (s *pace) of(user workload.Ref, uid string) *past {
	if p := s.pasts[user]; p != nil && p.uid == uid {
		return p
	}
	return nil
}

// Rolled notes that a workload was rolled by us for some sources.
func (p *Plan) Rolled(user workload.Ref, uid string, sources []checksum.Source, now time.Time) {
	s := &p.pace
	its := s.of(user, uid)
	if its == nil {
		s.sweep(now)
		its = &past{uid: uid}
		s.pasts[user] = its
	}
	last := its.last()
	its.rolls[its.next] = roll{now, sources}
	its.next = (its.next + 1) % paceRolls
	switch oldest := its.rolls[its.next].at; {
	case its.pause > 0 && now.Sub(last) > max(2*its.pause, paceWindow):
		its.pause = 0 // it has calmed down
	case its.pause > 0:
		its.pause = min(2*its.pause, LongestPause)
	case !oldest.IsZero() && now.Sub(oldest) < paceWindow:
		its.pause = min(2*s.settle, LongestPause)
	}
}

// LastRoll is when we last rolled a workload, zero when that is not known.
func (p *Plan) LastRoll(user workload.Ref, uid string) time.Time {
	if its := p.pace.of(user, uid); its != nil {
		return its.last()
	}
	return time.Time{}
}

func (p *past) last() time.Time { return p.rolls[(p.next+paceRolls-1)%paceRolls].at }

// wait is how long the next roll has to wait yet.
func (s *pace) wait(user workload.Ref, uid string, now time.Time) time.Duration {
	its := s.of(user, uid)
	if its == nil || its.pause == 0 {
		return 0
	}
	return max(0, its.last().Add(its.pause).Sub(now))
}

// Hot are the sources for which a workload has rolled more than once of late, sorted,
// and those of them of which people are to be told now: each not more often than once
// in LongestPause.
func (p *Plan) Hot(user workload.Ref, uid string, now time.Time) (hot, tell []checksum.Source) {
	s := &p.pace
	its := s.of(user, uid)
	if its == nil {
		return nil, nil
	}
	times := map[checksum.Source]int{}
	for _, roll := range its.rolls {
		for _, source := range roll.sources {
			if times[source]++; times[source] == 2 {
				hot = append(hot, source)
			}
		}
	}
	slices.SortFunc(hot, checksum.Source.Compare)
	maps.DeleteFunc(s.told, func(_ SourceRef, when time.Time) bool { return now.Sub(when) >= LongestPause })
	for _, source := range hot {
		at := SourceRef{Namespace: user.Namespace, Source: source}
		if _, told := s.told[at]; !told {
			s.told[at] = now
			tell = append(tell, source)
		}
	}
	return hot, tell
}

// sweep forgets who has long been calm, now and then.
func (s *pace) sweep(now time.Time) {
	const enough = 1024
	if len(s.pasts) < enough {
		return
	}
	for user, p := range s.pasts {
		if now.Sub(p.last()) > remembered {
			delete(s.pasts, user)
		}
	}
}

// Slowed is how long the next roll of a workload has to wait for its pace.
func (p *Plan) Slowed(user workload.Ref, uid string, now time.Time) time.Duration {
	return p.pace.wait(user, uid, now)
}

// ToldOf reports whether people were told that a source is written again and again.
func (p *Plan) ToldOf(at SourceRef) bool {
	_, told := p.pace.told[at]
	return told
}
