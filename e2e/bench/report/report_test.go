package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/e2e/bench/report"
)

func TestASpreadIsMadeOfValuesThatWereMeasured(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for about, c := range map[string]struct {
		values []float64
		want   report.Spread
	}{
		"nothing":  {nil, report.Spread{}},
		"one":      {[]float64{7}, report.Spread{N: 1, Min: 7, P50: 7, P99: 7, Max: 7, Mean: 7}},
		"two":      {[]float64{3, 1}, report.Spread{N: 2, Min: 1, P50: 1, P99: 3, Max: 3, Mean: 2}},
		"three":    {[]float64{9, 1, 2}, report.Spread{N: 3, Min: 1, P50: 2, P99: 9, Max: 9, Mean: 4}},
		"1 to 100": {hundred, report.Spread{N: 100, Min: 1, P50: 50, P99: 99, Max: 100, Mean: 50.5}},
	} {
		t.Run(about, func(t *testing.T) {
			if diff := cmp.Diff(c.want, report.Of(c.values...)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if hundred[0] != 100 {
		t.Error("the values were sorted in place")
	}
}

func TestTargets(t *testing.T) {
	floor := report.Of(2, 2, 2)
	for about, c := range map[string]struct {
		figure  *report.Figure
		reached bool
	}{
		"just reached":                    {report.New("x", "ms", report.Of(3)).AtMost(report.P50, 3), true},
		"missed":                          {report.New("x", "ms", report.Of(3.1)).AtMost(report.P50, 3), false},
		"of another number":               {report.New("x", "ms", report.Of(1, 1, 9)).AtMost(report.Max, 3), false},
		"a ratio":                         {report.New("x", "ms", report.Of(3)).Over("y", floor).AtMost(report.Ratio, 1.5), true},
		"a ratio that is missed":          {report.New("x", "ms", report.Of(4)).Over("y", floor).AtMost(report.Ratio, 1.5), false},
		"at least":                        {report.New("x", "1/s", report.Of(1.6)).Over("y", floor).AtLeast(report.Ratio, 0.8), true},
		"less than that":                  {report.New("x", "1/s", report.Of(1.5)).Over("y", floor).AtLeast(report.Ratio, 0.8), false},
		"what was not measured":           {report.New("x", "ms", report.Of()).AtMost(report.P50, 3), false},
		"a ratio without a floor":         {report.New("x", "ms", report.Of(1)).AtMost(report.Ratio, 3), false},
		"a floor that was not measured":   {report.New("x", "ms", report.Of(1)).Over("y", report.Of()).AtMost(report.Ratio, 3), false},
		"a floor of nothing has no ratio": {report.New("x", "ms", report.Of(1)).Over("y", report.Of(0)).AtMost(report.Ratio, 3), false},
	} {
		t.Run(about, func(t *testing.T) {
			if got := c.figure.Targets[0].Reached; got != c.reached {
				t.Errorf("reached: %t, want %t", got, c.reached)
			}
		})
	}
}
