package follow

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Progress is when a watch last told anything, and when it was last asked to. A
// healthy API server sends a bookmark about once a minute, so more than some minutes
// mean that what is held is behind.
type Progress struct{ made, asked atomic.Int64 }

// Made notes progress.
func (p *Progress) Made(now time.Time) { p.made.Store(now.UnixNano()) }

// Last is when there was any, zero when never.
func (p *Progress) Last() time.Time { return at(p.made.Load()) }

// Asked notes that the API server is asked for something.
func (p *Progress) Asked(now time.Time) { p.asked.Store(now.UnixNano()) }

// Sign is when there was progress, or the API server was asked for it. A Reflector
// that works asks anew every few minutes, whatever the API server does: each of its
// requests has a bound, and a silent watch is given up. One that does not hangs.
func (p *Progress) Sign() time.Time { return at(max(p.made.Load(), p.asked.Load())) }

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

func at(nanoseconds int64) time.Time {
	if nanoseconds != 0 {
		return time.Unix(0, nanoseconds)
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
