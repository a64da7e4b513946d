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
}

// Again counts one for an object, and reports whether that is to be reported: if it is the n-th within some
// time, and was not reported for Every. n is always the same.
func (l *Limit) Again(uid types.UID, n int, within time.Duration, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(uid, n)
	one.times[one.next] = now
	one.next = (one.next + 1) % n
	if now.Sub(one.times[one.next]) > within || now.Sub(one.reported) < Every {
		return false
	}
	one.reported = now
	return true
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
