package rollout

import (
	"fmt"
	"strconv"
	"strings"
)

// Budget is how many workloads may roll at once in the cluster: a number, a share of
// the workloads that can roll, or the default, which the zero Budget is. It is a value
// of a flag (pflag.Value).
type Budget struct{ number, percent int } // at most one of them is not 0

// The default is one in a hundred, within these bounds.
const (
	leastByDefault = 10
	mostByDefault  = 100
)

// mostSlots is the largest number that can be asked for.
const mostSlots = 1_000_000

// String is the text that Set reads as this Budget: 25, 2% or default.
func (b Budget) String() string {
	switch {
	case b.number > 0:
		return strconv.Itoa(b.number)
	case b.percent > 0:
		return strconv.Itoa(b.percent) + "%"
	}
	return "default"
}

// Set reads a Budget. After an error it is what it was.
func (b *Budget) Set(text string) error {
	if text == "default" {
		*b = Budget{}
		return nil
	}
	digits, isShare := strings.CutSuffix(text, "%")
	most := mostSlots
	if isShare {
		most = 100
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n < 1 || n > uint64(most) {
		return fmt.Errorf("want a whole number from 1 to %d, such as 25; a whole share of the workloads from 1%% to 100%%, such as 2%%; or default", mostSlots)
	}
	if isShare {
		*b = Budget{percent: int(n)}
	} else {
		*b = Budget{number: int(n)}
	}
	return nil
}

// Type names a Budget in the help of a command.
func (b *Budget) Type() string { return "budget" }

// Slots is how many may roll at once while so many workloads can roll: at least one.
// A share is rounded up.
func (b Budget) Slots(workloads int) int {
	switch {
	case b.number > 0:
		return b.number
	case b.percent > 0:
		return max(1, share(workloads, b.percent))
	}
	return min(max(leastByDefault, share(workloads, 1)), mostByDefault)
}

// share is a percentage of some workloads, rounded up.
func share(workloads, percent int) int { return (workloads*percent + 99) / 100 }

// PerNamespace is how many of the slots of the cluster the workloads of one namespace
// may take: as many as are set; 0 is nine tenths, rounded down, so that another
// namespace finds room. It is at least one, and at most all.
func PerNamespace(slots, set int) int {
	if set == 0 {
		set = slots * 9 / 10
	}
	return max(1, min(set, slots))
}

// Number is a Budget of so many, at least one.
func Number(slots int) Budget { return Budget{number: max(1, slots)} }
