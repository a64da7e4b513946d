package scenario

import (
	"cmp"
	"slices"
	"time"
)

// usage adds up how many slots rollouts take, each until it has soaked.
type usage struct {
	begin, end time.Time
	soak       time.Duration
	edges      []edge
	taken      time.Duration
}

type edge struct {
	at   time.Time
	more int
}

// add counts one rollout.
func (u *usage) add(began, done time.Time) {
	free := done.Add(u.soak)
	u.edges = append(u.edges, edge{began, 1}, edge{free, -1})
	if free.After(u.end) {
		free = u.end
	}
	u.taken += free.Sub(began)
}

// most is how many were taken at once. A slot that is freed at the moment at
// which another is taken is taken once.
func (u *usage) most() (most int) {
	slices.SortFunc(u.edges, func(a, b edge) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.more, b.more))
	})
	now := 0
	for _, e := range u.edges {
		now += e.more
		most = max(most, now)
	}
	return most
}

// mean is how many were taken on the average.
func (u *usage) mean() float64 { return u.taken.Seconds() / u.end.Sub(u.begin).Seconds() }
