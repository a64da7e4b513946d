package forecast

import (
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// look is a workload to be looked at, or, of the zero Ref, whose turn it is.
type look struct {
	when time.Time
	at   workload.Ref
	n    int // of all that were queued
}

// agenda is what is to be looked at, the next first. It implements heap.Interface.
type agenda []look

func (a *agenda) Len() int      { return len(*a) }
func (a *agenda) Swap(i, j int) { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }

// Less orders by time; then turns come first, as they cost the least.
func (a *agenda) Less(i, j int) bool {
	x, y := &(*a)[i], &(*a)[j]
	if order := x.when.Compare(y.when); order != 0 {
		return order < 0
	}
	if turns := x.at == (workload.Ref{}); turns != (y.at == (workload.Ref{})) {
		return turns
	}
	return x.n < y.n
}

func (a *agenda) Push(one any) {
	next, _ := one.(look)
	*a = append(*a, next)
}

func (a *agenda) Pop() any {
	end := len(*a) - 1
	next := (*a)[end]
	*a = (*a)[:end]
	return next
}
