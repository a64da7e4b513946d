// Package shortlist decides which namespaces have series of their own in metrics, so that the
// number of series is bounded however many namespaces there are. The others are summed.
//
// It must not know what the metrics count. It has no client, no goroutine and no clock.
package shortlist

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// Others is the label of all namespaces together that have no series of their own. No
	// namespace can have that name.
	Others = "(others)"
	// Most is how many namespaces may be on a list.
	Most = 1000
	// Quiet is for how long there was nothing to tell of a namespace that gives its place to
	// one of which there is.
	Quiet = time.Hour
)

// Counts are how many of something there are, by namespace and state.
type Counts map[Cell]int

// Cell is what is counted.
type Cell struct{ Namespace, State string }

// Add counts some more.
func (c Counts) Add(namespace, state string, n int) { c[Cell{namespace, state}] += n }

// Names are the namespaces that have series of their own. They never change.
type Names map[string]bool

// Label is what a namespace is called in metrics: by its name, or Others.
func (n Names) Label(namespace string) string {
	if n[namespace] {
		return namespace
	}
	return Others
}

// Sum calls yield with each label and each state, and the sum of what is counted of it.
func (n Names) Sum(counts Counts, states []string, yield func(sum float64, labels ...string)) {
	sums := Counts{}
	for cell, count := range counts {
		sums.Add(n.Label(cell.Namespace), cell.State, count)
	}
	for _, label := range append([]string{Others}, slices.Sorted(maps.Keys(n))...) {
		for _, state := range states {
			yield(float64(sums[Cell{label, state}]), label, state)
		}
	}
}

// List holds the choice of one process. Its methods may be called at any time, from any
// goroutine.
type List struct {
	size int

	mu     sync.Mutex
	places map[string]time.Time
	names  Names
}

// New makes a list with some places, none of which is taken.
func New(size int) *List { return &List{size: size} }

// Names is the choice that was made last.
func (l *List) Names() Names {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
}

// Choose chooses anew: told are the workloads of which the metrics tell something now, as they
// wait, say, and served is how many there are in each namespace.
func (l *List) Choose(told Counts, served map[string]int, now time.Time) Names {
	needs := make(map[string]need, len(served))
	for namespace, n := range served {
		needs[namespace] = need{served: n}
	}
	for cell, n := range told {
		of := needs[cell.Namespace]
		of.told += n
		needs[cell.Namespace] = of
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places = choose(l.places, needs, l.size, now)
	l.names = make(Names, len(l.places))
	for namespace := range l.places {
		l.names[namespace] = true
	}
	return l.names
}

// need is why a namespace wants a place.
type need struct{ told, served int }

// none reports whether it wants no place.
func (n need) none() bool { return n == need{} }

// choose gives places, each with when there was last something to tell of the namespace, zero
// for never. A namespace keeps its place while it has a need. A free place goes to the one
// with most to tell, of equals the one with most workloads that are served, of equals the
// first by name. When no place is free, a namespace with something to tell takes that of the
// one of which there was nothing to tell for longest, and at least for Quiet.
func choose(places map[string]time.Time, needs map[string]need, size int, now time.Time) map[string]time.Time {
	chosen := make(map[string]time.Time, size)
	for namespace, told := range places {
		if n := needs[namespace]; n.told > 0 {
			chosen[namespace] = now
		} else if !n.none() {
			chosen[namespace] = told
		}
	}
	quiet := slices.SortedFunc(maps.Keys(chosen), func(a, b string) int {
		return cmp.Or(chosen[a].Compare(chosen[b]), cmp.Compare(needs[a].served, needs[b].served), cmp.Compare(b, a))
	})
	for _, namespace := range inNeed(needs, chosen) {
		told := time.Time{}
		if needs[namespace].told > 0 {
			told = now
		}
		switch {
		case len(chosen) < size:
		case told.IsZero() || len(quiet) == 0 || now.Sub(chosen[quiet[0]]) < Quiet:
			return chosen
		default:
			delete(chosen, quiet[0])
			quiet = quiet[1:]
		}
		chosen[namespace] = told
	}
	return chosen
}

// inNeed are the namespaces that want a place and have none, the one that needs it most first.
func inNeed(needs map[string]need, chosen map[string]time.Time) (all []string) {
	for namespace, n := range needs {
		if _, has := chosen[namespace]; !has && !n.none() {
			all = append(all, namespace)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(needs[b].told, needs[a].told), cmp.Compare(needs[b].served, needs[a].served), cmp.Compare(a, b))
	})
	return all
}
