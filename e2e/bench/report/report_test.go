package report_test

import (
	"strings"
	"testing"
	"time"

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

func TestTheReportSaysWhatWasMissedSkippedAndFailed(t *testing.T) {
	r := &report.Report{
		Command: "make bench", Date: time.Date(2026, 11, 21, 3, 4, 0, 0, time.UTC), Commit: "abc", Machine: report.Machine{Cores: 2, Load: "0.1 0.2 0.3"},
		Products: []report.Product{{Name: "ours", Version: "v1"}, {Name: "theirs", Version: "v2"}},
		Results: []*report.Result{
			{Scenario: "s", Title: "S", Method: "by hand", Product: "ours", Figures: []*report.Figure{
				report.New("latency | of it", "ms", report.Of(1.23456, 12345)).Over("nothing", report.Of(1)).AtMost(report.P50, 1).AtMost(report.P99, 20000).Saying("roughly"),
			}},
			{Scenario: "s", Title: "S", Method: "by hand", Product: "theirs", Failed: "it fell over", Skipped: []string{"it cannot"}},
		},
	}
	text := r.Markdown()
	for _, want := range []string{
		"ours: 1 targets reached, 1 missed; 0 measurements SKIPPED, 0 scenarios FAILED",
		"theirs: 0 targets reached, 0 missed; 1 measurements SKIPPED, 1 scenarios FAILED",
		`latency \| of it [1] [2] | ms | 1.23 | 12345 |`, "p50 ≤ 1; p99 ≤ 20000 | **missed**; reached", "[1] roughly", "[2] floor: nothing",
		"**SKIPPED**: it cannot", "**FAILED**: it fell over", "`make bench`", "2026-11-21 03:04 UTC",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "by hand") != 1 {
		t.Error("the method is told once for each scenario")
	}
}

func TestProductsAreComparedWithTheBestOfTheOthers(t *testing.T) {
	figure := func(values ...float64) *report.Figure {
		return report.New("until the last", "s", report.Of(values...)).AtMostPeers(report.P50)
	}
	ours, wave, slow := figure(3), figure(4), figure(8)
	r := &report.Report{Results: []*report.Result{
		{Scenario: "fanout", Product: "configstamp", Figures: []*report.Figure{ours}},
		{Scenario: "edit", Product: "wave", Figures: []*report.Figure{figure(1)}}, // of another scenario
	}}
	judged := func() report.Target {
		t.Helper()
		if err := r.Write(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		return ours.Targets[0]
	}
	if got := judged(); !got.Open || r.Tally("configstamp") != (report.Tally{}) {
		t.Errorf("nobody else was measured: %+v, %+v", got, r.Tally("configstamp"))
	}
	r.Results = append(r.Results, &report.Result{Scenario: "fanout", Product: "slow", Figures: []*report.Figure{slow}},
		&report.Result{Scenario: "fanout", Product: "wave", Figures: []*report.Figure{wave}},
		&report.Result{Scenario: "fanout", Product: "none", Figures: []*report.Figure{figure()}})
	if got := judged(); got.Open || !got.Reached || got.Limit != 4 {
		t.Errorf("want 3 to be at most 4: %+v", got)
	}
	if got := wave.Targets[0]; got.Reached || got.Limit != 3 {
		t.Errorf("want 4 to be more than 3: %+v", got)
	}
	wave.Value = report.Of(2)
	if got := judged(); got.Reached || got.Limit != 2 || r.Tally("configstamp").Missed != 1 {
		t.Errorf("want 3 to be more than 2: %+v", got)
	}
}
