// Package rarely limits how often something is reported of an object.
package rarely

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// Every is how often the same is reported of one workload.
	Every = time.Hour
	// kept bounds how many objects are remembered.
	kept = 4096
	// longestUID is longer than any that the API server gives (36 bytes): a review may be forged.
	longestUID = 64
)

// Limit limits how often one thing is reported of each object. The zero value is empty. There are two
// generations: when the young one is full the old one is forgotten, so what is seen often stays and nothing
// grows.
type Limit struct {
	mu         sync.Mutex
	young, old map[types.UID]*seen
}

// seen is when something happened, and when it was reported.
type seen struct {
	times    []time.Time // a ring: next is the oldest
	next     int
	reported time.Time
	before   time.Time // when it was reported before that
}

// Again counts an occurrence for an object, and returns whether it is due to be reported: the n-th within some
// time, and not reported for Every. n is always the same. Call Unreported if it was not reported after all.
func (l *Limit) Again(uid types.UID, n int, within time.Duration, now time.Time) bool {
	if len(uid) > longestUID {
		return false // it is of no object
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(uid, n)
	one.times[one.next] = now
	one.next = (one.next + 1) % n
	if now.Sub(one.times[one.next]) > within || now.Sub(one.reported) < Every {
		return false
	}
	one.before, one.reported = one.reported, now
	return true
}

// Unreported takes back that an occurrence was reported.
func (l *Limit) Unreported(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one, known := l.young[uid]; known {
		one.reported = one.before
	}
}

func (l *Limit) of(uid types.UID, n int) *seen {
	if one, ok := l.young[uid]; ok {
		return one
	}
	one, ok := l.old[uid]
	if !ok {
		one = &seen{times: make([]time.Time, n)}
	}
	if l.young == nil || len(l.young) >= kept/2 {
		l.old, l.young = l.young, map[types.UID]*seen{}
	}
	l.young[uid] = one
	return one
}
