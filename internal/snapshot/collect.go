package snapshot

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// Facts are what is known of one namespace when snapshots are collected there.
type Facts struct {
	// All are its snapshots, as memory holds them.
	All []Snapshot
	// Ring verifies them. What cannot be verified is nobody's to take away.
	Ring *checksum.Ring
	// Exists reports whether there is a source.
	Exists func(of checksum.Source) bool
	// Named reports whether anything names a snapshot. All of that was listed after Listed.
	Named  func(name string) bool
	Listed time.Time
	// Now is what a mark is written with.
	Now time.Time
}

// Bounds say what stays although nothing names it.
type Bounds struct {
	// Keep is how many snapshots of a source stay while it exists: the newest.
	Keep int
	// Grace is how long a mark has to stand before its snapshot is taken away.
	Grace time.Duration
}

// Work is what is to be done with the snapshots of a namespace.
type Work struct{ Mark, Unmark, Sweep []Snapshot }

// Collect marks first and sweeps later. Whoever begins to name a snapshot takes its mark
// away, or sees none: so what has been marked for a while, and is named by nothing that was
// listed after that, is named by nobody who could not have been seen.
func Collect(facts *Facts, bounds Bounds) (work Work) {
	kept := keep(facts, bounds.Keep)
	for i := range facts.All {
		s := &facts.All[i]
		since := s.UnusedSince()
		switch {
		case !s.Verified(facts.Ring):
		case facts.Named(s.Name) || kept[s.Name]:
			if s.Marked() {
				work.Unmark = append(work.Unmark, *s)
			}
		case since.IsZero() || since.After(facts.Now): // no mark, or none of ours
			work.Mark = append(work.Mark, *s)
		case !facts.Listed.Before(since.Add(bounds.Grace)):
			work.Sweep = append(work.Sweep, *s)
		}
	}
	return work
}

// Idle reports whether collection has nothing to do, whatever is named.
func Idle(facts *Facts, bounds Bounds) bool {
	kept := keep(facts, bounds.Keep)
	return !slices.ContainsFunc(facts.All, func(s Snapshot) bool {
		return s.Verified(facts.Ring) && (s.Marked() || !kept[s.Name])
	})
}

// keep are the newest snapshots of each source that exists.
func keep(facts *Facts, most int) map[string]bool {
	newest := slices.Clone(facts.All)
	slices.SortFunc(newest, func(a, b Snapshot) int { return b.MadeAt().Compare(a.MadeAt()) })
	kept, count := map[string]bool{}, map[checksum.Source]int{}
	for i := range newest {
		s := &newest[i]
		if count[s.Of] < most && s.Verified(facts.Ring) && facts.Exists(s.Of) {
			count[s.Of]++
			kept[s.Name] = true
		}
	}
	return kept
}
