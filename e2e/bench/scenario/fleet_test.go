package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBatchesGrowUpToTheWidth(t *testing.T) {
	for about, c := range map[string]struct {
		n, width int
		want     []int
	}{
		"one":                         {1, 100, []int{1}},
		"three":                       {3, 100, []int{1, 2}},
		"a rest":                      {20, 6, []int{1, 2, 4, 6, 6, 1}},
		"a width that is a power":     {15, 8, []int{1, 2, 4, 8}},
		"one at a time":               {3, 1, []int{1, 1, 1}},
		"a rest before it is reached": {5, 100, []int{1, 2, 2}},
	} {
		t.Run(about, func(t *testing.T) {
			if diff := cmp.Diff(c.want, batches(c.n, c.width)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheoryAddsUpSettleRolloutsAndSoaks(t *testing.T) {
	f := Fleet{Soak: 10 * time.Second}
	roll := func(size int) time.Duration { return time.Duration(size) * time.Second }
	// settle, 1+2+4+3 s of rollouts, and three soaks between four batches
	if got, want := f.inTheory(10, 4, roll), settle+40*time.Second; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSlotsInUseCountWhatRollsAndWhatSoaks(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	u := usage{begin: at(0), end: at(20), soak: 2 * time.Second}
	u.add(at(0), at(8))   // until 10
	u.add(at(5), at(13))  // until 15
	u.add(at(10), at(19)) // begins when the first one ends; only until 20 counts
	if most, mean := u.most(), u.mean(); most != 2 || mean != 1.5 {
		t.Errorf("most %d, mean %v; want 2 and 1.5", most, mean)
	}
}
