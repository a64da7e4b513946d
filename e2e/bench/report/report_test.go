package report_test

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/bench/report"
)

func TestAFigureIsTold(t *testing.T) {
	for want, values := range map[string][]float64{
		"7":                             {7},
		"3 (5; 1 to 11; 3)":             {11, 1, 3},
		"0.0123 (1.51; 0.0123 to 3; 2)": {3, 0.01234},
		"1234":                          {1234.4},
	} {
		if got := (report.Figure{Values: values}).String(); got != want {
			t.Errorf("%v is told as %q, want %q", values, got, want)
		}
	}
}

func TestProductsStandSideBySide(t *testing.T) {
	a := &report.Result{Scenario: "idle", Title: "Rest", Method: "By hand.", Product: "configstamp=/a", Load: "0"}
	b := &report.Result{Scenario: "idle", Product: "configstamp=/b", Load: "1", Failed: "it ended"}
	a.Add("memory", "MiB", 20)
	a.AddNoted("requests", "1", "3 leases", 3)
	b.Add("memory", "MiB", 25)
	text := (&report.Report{Results: []*report.Result{a, b}}).Markdown()
	for _, want := range []string{
		"| idle | configstamp=/a | configstamp=/b |", "| memory, MiB | 20 | 25 |", "| requests, 1 | 3 | |",
		"configstamp=/a: requests: 3 leases", "configstamp=/b: **FAILED**: it ended",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
}
