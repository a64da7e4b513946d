package waiting

import (
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// staleAfter is how long an undo keeps a workload on older content before people are told,
// and how often they are told again.
const staleAfter = 24 * time.Hour

// Older are the workloads whose new pods get older content than their sources hold: by
// pins, until they roll, or by an undo that has declined the content, for as long as it
// stands. Its methods may be called at any time, from any goroutine.
type Older struct {
	mu  sync.Mutex
	all map[workload.Ref]older
}

// older is about one workload.
type older struct {
	since    time.Time // when the first of its sources was written
	declined []checksum.Source
	told     time.Time
}

// Looked notes which sources a look has found to hold newer content, and which of those an
// undo has declined. What nobody knows the time of was written when it was found first.
func (o *Older) Looked(ref workload.Ref, sources, declined []checksum.Source, written func(rollout.SourceRef) time.Time, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(sources) == 0 {
		delete(o.all, ref)
		return
	}
	was, known := o.all[ref]
	is := older{since: now, declined: declined}
	if known && slices.Equal(was.declined, declined) {
		is.told = was.told
	}
	for _, source := range sources {
		at := written(rollout.SourceRef{Namespace: ref.Namespace, Source: source})
		if at.IsZero() && known {
			at = was.since
		}
		if !at.IsZero() && at.Before(is.since) {
			is.since = at
		}
	}
	o.all[ref] = is
}

// Forget drops a workload.
func (o *Older) Forget(ref workload.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, ref)
}

// Oldest is since when the first of them has older content, zero for none.
func (o *Older) Oldest() (since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, is := range o.all {
		if since.IsZero() || is.since.Before(since) {
			since = is.since
		}
	}
	return since
}

// Stale is a workload that an undo has kept on older content for long.
type Stale struct {
	Workload workload.Ref
	Declined []checksum.Source
	Since    time.Time
}

// Due are those that people are to be told of now: after a day, and each day.
func (o *Older) Due(now time.Time) (due []Stale) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ref, is := range o.all {
		if len(is.declined) == 0 || now.Sub(is.since) < staleAfter || now.Sub(is.told) < staleAfter {
			continue
		}
		due = append(due, Stale{ref, is.declined, is.since})
		is.told = now
		o.all[ref] = is
	}
	slices.SortFunc(due, func(a, b Stale) int { return a.Workload.Compare(b.Workload) })
	return due
}
