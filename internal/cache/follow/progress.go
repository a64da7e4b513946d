package follow

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Progress is when a watch last delivered anything, and when it was last asked to. A
// healthy API server sends a bookmark about once a minute, so more than some minutes
// mean that what is held is behind.
type Progress struct{ made, asked atomic.Pointer[time.Time] }

// Made notes progress.
func (p *Progress) Made(now time.Time) { p.made.Store(&now) }

// Last is when there was any, zero when never.
func (p *Progress) Last() time.Time { return at(&p.made) }

// Asked notes that the API server is asked for something.
func (p *Progress) Asked(now time.Time) { p.asked.Store(&now) }

// Sign is when there was progress, or the API server was asked for it. A Reflector
// that works asks anew every few minutes, whatever the API server does: each of its
// requests has a bound, and a silent watch is given up. A Reflector without progress has hung.
func (p *Progress) Sign() time.Time {
	made, asked := at(&p.made), at(&p.asked)
	if made.After(asked) {
		return made
	}
	return asked
}

// asking is a client whose requests are noted.
type asking struct {
	cache.Getter
	note func()
}

// Get implements cache.Getter.
func (a asking) Get() *rest.Request {
	a.note()
	return a.Getter.Get()
}

// at is a time as it was noted, with the reading of the monotonic clock: a wall clock that is set
// makes no watch look silent.
func at(noted *atomic.Pointer[time.Time]) time.Time {
	if known := noted.Load(); known != nil {
		return *known
	}
	return time.Time{}
}

// Oldest is the last progress of the one that has been silent longest, zero when
// one never made any, or there is none.
func Oldest(all ...*Progress) time.Time { return oldest(all, (*Progress).Last) }

// OldestSign is the last sign of the one that has shown none for longest, zero when
// one never did, or there is none.
func OldestSign(all ...*Progress) time.Time { return oldest(all, (*Progress).Sign) }

func oldest(all []*Progress, of func(*Progress) time.Time) (oldest time.Time) {
	for i, progress := range all {
		last := of(progress)
		if last.IsZero() {
			return time.Time{}
		}
		if i == 0 || last.Before(oldest) {
			oldest = last
		}
	}
	return oldest
}
