package snapshot

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
)

// Facts are what is known of one namespace when snapshots are collected there.
type Facts struct {
	Namespace string
	// All are its snapshots, as memory holds them.
	All []Snapshot
	// Ring verifies them. What cannot be verified is not ours to take away.
	Ring *checksum.Ring
	// Now is what a source holds, nil when there is no such source.
	Now func(of checksum.Source) *checksum.Content
	// Named reports whether anything names a snapshot. All of that was listed after Listed.
	Named  func(name string) bool
	Listed time.Time
}

// Bounds say what stays although nothing names it.
type Bounds struct {
	// Keep is how many snapshots of a source stay while it exists: the newest.
	Keep int
	// Grace is for how long nothing may have named one that is taken away.
	Grace time.Duration
}

// Unused remembers since when nothing needs a snapshot. It begins anew with each leader.
type Unused map[types.NamespacedName]unused

type unused struct {
	uid   types.UID
	since time.Time
}

// Collect tells which snapshots may be deleted: those that every list for a while has found
// unneeded, the last one too. Nobody can begin to name such a one unseen: content of today
// is needed, and what a revision names is named.
func (u Unused) Collect(facts *Facts, bounds Bounds) (sweep []Snapshot) {
	idle := facts.idle(bounds.Keep)
	there := map[types.NamespacedName]bool{}
	for i := range idle {
		s := &idle[i]
		if facts.Named(s.Name) {
			continue
		}
		at := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		there[at] = true
		if was, known := u[at]; !known || was.uid != s.UID {
			u[at] = unused{s.UID, facts.Listed}
		} else if !facts.Listed.Before(was.since.Add(bounds.Grace)) {
			sweep = append(sweep, *s)
		}
	}
	for at := range u {
		if at.Namespace == facts.Namespace && !there[at] {
			delete(u, at)
		}
	}
	return sweep
}

// Used tells that somebody may need a snapshot again.
func (u Unused) Used(namespace, name string) {
	delete(u, types.NamespacedName{Namespace: namespace, Name: name})
}

// Ripe is when a list would first tell that something of a namespace may be deleted; zero:
// nothing waits for that.
func (u Unused) Ripe(namespace string, bounds Bounds) (first time.Time) {
	for at, was := range u {
		if ripe := was.since.Add(bounds.Grace); at.Namespace == namespace && (first.IsZero() || ripe.Before(first)) {
			first = ripe
		}
	}
	return first
}

// Idle reports whether there are snapshots that stay only if something names them.
func (f *Facts) Idle(bounds Bounds) bool { return len(f.idle(bounds.Keep)) > 0 }

// idle are the snapshots of ours that are neither what their source holds nor among the
// newest of it.
func (f *Facts) idle(keep int) (idle []Snapshot) {
	newest := slices.Clone(f.All)
	slices.SortStableFunc(newest, func(a, b Snapshot) int { return b.MadeAt().Compare(a.MadeAt()) })
	kept := map[checksum.Source]int{}
	for i := range newest {
		s := &newest[i]
		if !s.Verified(f.Ring) {
			continue
		}
		now := f.Now(s.Of)
		if now != nil && kept[s.Of] < keep {
			kept[s.Of]++
			continue
		}
		if now == nil || !now.SameEntries(s.Content) {
			idle = append(idle, *s)
		}
	}
	return idle
}
