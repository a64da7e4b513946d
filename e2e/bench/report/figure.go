package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Stat names one number of a Spread.
type Stat string

// The numbers of a Spread.
const (
	P50  Stat = "p50"
	P99  Stat = "p99"
	Min  Stat = "min"
	Max  Stat = "max"
	Mean Stat = "mean"
	// Ratio is, as Target.Of, the figure divided by its floor.
	Ratio Stat = "ratio"
)

// Figure is one thing that was measured, in one unit.
type Figure struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// By is the number of the spread by which figure and floor are compared.
	By    Stat   `json:"by"`
	Value Spread `json:"value"`
	// Floor is what the same thing costs at least, measured in the same run;
	// nil where there is none. FloorIs says what was measured.
	Floor   *Spread  `json:"floor,omitempty"`
	FloorIs string   `json:"floorIs,omitempty"`
	Ratio   *float64 `json:"ratio,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	Note    string   `json:"note,omitempty"`
}

// Target is a bound that a figure is to keep. Missing it fails nothing.
type Target struct {
	// Of is the number that is bounded; "ratio" is Figure.Ratio.
	Of      Stat    `json:"of"`
	AtLeast bool    `json:"atLeast,omitempty"`
	Limit   float64 `json:"limit"`
	Reached bool    `json:"reached"`
}

// New makes a figure, compared by p50.
func New(name, unit string, value Spread) *Figure {
	return &Figure{Name: name, Unit: unit, By: P50, Value: value}
}

// One makes a figure that was measured once.
func One(name, unit string, value float64) *Figure { return New(name, unit, Of(value)) }

// Compared has the figure compared by another number than p50. It comes before
// Over.
func (f *Figure) Compared(by Stat) *Figure {
	f.By = by
	return f
}

// Over adds the floor.
func (f *Figure) Over(what string, floor Spread) *Figure {
	f.Floor, f.FloorIs = &floor, what
	if below := floor.stat(f.By); below != 0 && floor.N > 0 && f.Value.N > 0 {
		ratio := f.Value.stat(f.By) / below
		f.Ratio = &ratio
	}
	return f
}

// AtMost adds an upper bound; Over comes before it.
func (f *Figure) AtMost(of Stat, limit float64) *Figure {
	return f.target(Target{Of: of, Limit: limit})
}

// AtLeast adds a lower bound; Over comes before it.
func (f *Figure) AtLeast(of Stat, limit float64) *Figure {
	return f.target(Target{Of: of, Limit: limit, AtLeast: true})
}

// Saying adds a remark.
func (f *Figure) Saying(format string, args ...any) *Figure {
	f.Note = fmt.Sprintf(format, args...)
	return f
}

func (f *Figure) target(t Target) *Figure {
	value, known := f.number(t.Of)
	if t.AtLeast {
		t.Reached = known && value >= t.Limit
	} else {
		t.Reached = known && value <= t.Limit
	}
	f.Targets = append(f.Targets, t)
	return f
}

// number is what a target of a figure bounds, if it was measured.
func (f *Figure) number(of Stat) (value float64, known bool) {
	switch {
	case of != Ratio:
		return f.Value.stat(of), f.Value.N > 0
	case f.Ratio != nil:
		return *f.Ratio, true
	}
	return 0, false
}

// String is the target as people write it: p50 ≤ 8.
func (t Target) String() string {
	sign := "≤"
	if t.AtLeast {
		sign = "≥"
	}
	return fmt.Sprintf("%s %s %s", t.Of, sign, number(t.Limit))
}

// number writes three significant digits, and whole numbers whole.
func number(value float64) string {
	switch {
	case value == math.Trunc(value) && math.Abs(value) < 1e15:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case math.Abs(value) >= 100:
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	text := strconv.FormatFloat(value, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
