package condense

import (
	"sync/atomic"
	"time"
)

// Progress is when a watch last told anything. A healthy API server sends a
// bookmark about once a minute, so more than some minutes mean that what is held
// is behind.
type Progress struct{ nanoseconds atomic.Int64 }

// Made notes progress.
func (p *Progress) Made(now time.Time) { p.nanoseconds.Store(now.UnixNano()) }

// Last is when there was any, zero when never.
func (p *Progress) Last() time.Time {
	if nanoseconds := p.nanoseconds.Load(); nanoseconds != 0 {
		return time.Unix(0, nanoseconds)
	}
	return time.Time{}
}

// Oldest is the last progress of the one that has been silent longest, zero when
// one never made any, or there is none.
func Oldest(all ...*Progress) (oldest time.Time) {
	for i, progress := range all {
		last := progress.Last()
		if last.IsZero() {
			return time.Time{}
		}
		if i == 0 || last.Before(oldest) {
			oldest = last
		}
	}
	return oldest
}
