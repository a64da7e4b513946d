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

// Need is why a namespace wants a place.
type Need struct {
	// Told is how many workloads there are of which the metrics tell something: they wait, say.
	Told int
	// Served is how many workloads are served.
	Served int
}

// none reports whether the namespace wants no place.
func (n Need) none() bool { return n.Told == 0 && n.Served == 0 }

// Names are the namespaces that have series of their own. They never change.
type Names map[string]bool

// Label is what a namespace is called in metrics: by its name, or Others.
func (n Names) Label(namespace string) string {
	if n[namespace] {
		return namespace
	}
	return Others
}

// Labels are all labels that there are, in order: Others is the first.
func (n Names) Labels() []string { return append([]string{Others}, slices.Sorted(maps.Keys(n))...) }

// Cell is what is counted of a namespace.
type Cell struct{ Namespace, State string }

// Sum calls yield with each label and each state, and the sum of some counts.
func (n Names) Sum(counts map[Cell]int, states []string, yield func(label, state string, sum int)) {
	sums := map[Cell]int{}
	for cell, count := range counts {
		sums[Cell{n.Label(cell.Namespace), cell.State}] += count
	}
	for _, label := range n.Labels() {
		for _, state := range states {
			yield(label, state, sums[Cell{label, state}])
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

// Choose chooses anew, by the need of each namespace now.
func (l *List) Choose(needs map[string]Need, now time.Time) Names {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places = choose(l.places, needs, l.size, now)
	l.names = make(Names, len(l.places))
	for namespace := range l.places {
		l.names[namespace] = true
	}
	return l.names
}

// choose gives places, each with when there was last something to tell of the namespace, zero
// for never. A namespace keeps its place while it has a need. A free place goes to the one
// with most to tell, of equals the one with most workloads that are served, of equals the
// first by name. When no place is free, a namespace with something to tell takes that of the
// one of which there was nothing to tell for longest, and at least for Quiet.
func choose(places map[string]time.Time, needs map[string]Need, size int, now time.Time) map[string]time.Time {
	chosen := make(map[string]time.Time, size)
	for namespace, told := range places {
		if need := needs[namespace]; need.Told > 0 {
			chosen[namespace] = now
		} else if !need.none() {
			chosen[namespace] = told
		}
	}
	quiet := slices.SortedFunc(maps.Keys(chosen), func(a, b string) int {
		return cmp.Or(chosen[a].Compare(chosen[b]), cmp.Compare(needs[a].Served, needs[b].Served), cmp.Compare(b, a))
	})
	for _, namespace := range inNeed(needs, chosen) {
		told := time.Time{}
		if needs[namespace].Told > 0 {
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
func inNeed(needs map[string]Need, chosen map[string]time.Time) (all []string) {
	for namespace, need := range needs {
		if _, has := chosen[namespace]; !has && !need.none() {
			all = append(all, namespace)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(needs[b].Told, needs[a].Told), cmp.Compare(needs[b].Served, needs[a].Served), cmp.Compare(a, b))
	})
	return all
}
