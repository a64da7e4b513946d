package checksum

import (
	"cmp"
	"slices"
)

// Joined puts references together that differ in their place alone, sorted: what
// is kept of a workload to make its selections of, under whatever policy.
func Joined(references []Reference) []Reference {
	sorted := make([]*Reference, 0, usualReferences)
	for i := range references {
		// The others select nothing, under any policy.
		if r := &references[i]; r.Use != Unused && r.Source.Nameable() {
			sorted = append(sorted, r)
		}
	}
	slices.SortFunc(sorted, compareButPlaces)
	joined := make([]Reference, 0, len(sorted))
	for i, r := range sorted {
		if i == 0 || compareButPlaces(sorted[i-1], r) != 0 {
			joined = append(joined, Reference{Source: r.Source, Use: r.Use, Optional: r.Optional, Env: r.Env})
		}
		j := &joined[len(joined)-1]
		j.All = j.All || r.All
		j.Keys = gather(j.Keys, sortedUnique, r.Keys...)
		j.RequiredKeys = gather(j.RequiredKeys, sortedUnique, r.RequiredKeys...)
	}
	for i := range joined { // what there was room for would be kept as well
		j := &joined[i]
		j.Keys = slices.Clone(sortedUnique(j.Keys))
		if j.RequiredKeys = sortedUnique(j.RequiredKeys); slices.Equal(j.Keys, j.RequiredKeys) {
			j.RequiredKeys = j.Keys
		} else {
			j.RequiredKeys = slices.Clone(j.RequiredKeys)
		}
	}
	return slices.Clone(joined)
}

// compareButPlaces orders references by what Joined does not put together.
func compareButPlaces(a, b *Reference) int {
	return cmp.Or(a.Source.Compare(b.Source), cmp.Compare(a.Use, b.Use), compareTruths(a.Optional, b.Optional), compareTruths(a.Env, b.Env))
}

func compareTruths(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// gather adds to a list that unique makes a set of in the end. It does so each
// time before the list grows, so that the list is never much longer than the set.
func gather[T any](list []T, unique func([]T) []T, more ...T) []T {
	if len(list)+len(more) > cap(list) {
		list = unique(list)
		list = slices.Grow(list, len(list)+len(more))
	}
	return append(list, more...)
}
