// Package report holds what was measured, and writes it down as JSON, with every value, and
// as one table for each scenario, with a column for each product. It knows no cluster and no
// product. Start reading at Report.
package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report is one run.
type Report struct {
	Date    time.Time `json:"date"`
	Commit  string    `json:"commit"`
	Quick   bool      `json:"quick"`
	Results []*Result `json:"results"`
}

// Result is what one scenario found out about one product.
type Result struct {
	Scenario string `json:"scenario"`
	Title    string `json:"title"`
	Method   string `json:"method"`
	// Product is as the command line has it.
	Product string `json:"product"`
	// Load is the load average of the machine when it began.
	Load    string   `json:"load"`
	Figures []Figure `json:"figures,omitempty"`
	// Skipped says what the product cannot do; Failed what went wrong.
	Skipped []string `json:"skipped,omitempty"`
	Failed  string   `json:"failed,omitempty"`
}

// Figure is one thing that was measured, once or more often, in one unit.
type Figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	Note   string    `json:"note,omitempty"`
}

// Add adds a figure, unless nothing was measured.
func (r *Result) Add(name, unit string, values ...float64) {
	r.AddNoted(name, unit, "", values...)
}

// AddNoted adds one with a remark.
func (r *Result) AddNoted(name, unit, note string, values ...float64) {
	if len(values) > 0 {
		r.Figures = append(r.Figures, Figure{Name: name, Unit: unit, Values: values, Note: note})
	}
}

// Skip says loudly that something could not be measured.
func (r *Result) Skip(format string, args ...any) {
	r.Skipped = append(r.Skipped, fmt.Sprintf(format, args...))
}

// Load is the load average of the last 1, 5 and 15 minutes now.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

// Write writes report.json and report.md into dir. It can be called again and again as results come in.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the report: %w; choose another --out", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	for name, content := range map[string][]byte{"report.json": append(text, '\n'), "report.md": []byte(r.Markdown())} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// Markdown is the report for people.
func (r *Report) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Measurements\n\n%s, commit %s", r.Date.UTC().Format("2006-01-02 15:04 MST"), r.Commit)
	if r.Quick {
		fmt.Fprintf(&out, ". **A quick run, with small sizes: for development, not for comparison.**")
	}
	fmt.Fprintf(&out, "\n\nWhat was measured more than once is told as median (mean; smallest to largest; how often).\n")
	var names []string
	for _, result := range r.Results {
		if !slices.Contains(names, result.Scenario) {
			names = append(names, result.Scenario)
			table(&out, slices.DeleteFunc(slices.Clone(r.Results), func(other *Result) bool { return other.Scenario != result.Scenario }))
		}
	}
	return out.String()
}

// table writes the results of one scenario, a row for each figure, a column for each product.
func table(out *strings.Builder, results []*Result) {
	fmt.Fprintf(out, "\n## %s\n\n%s\n\n| %s |", results[0].Title, results[0].Method, results[0].Scenario)
	var rows []Figure
	for _, result := range results {
		fmt.Fprintf(out, " %s |", result.Product)
		for _, figure := range result.Figures {
			if !slices.ContainsFunc(rows, func(row Figure) bool { return row.Name == figure.Name }) {
				rows = append(rows, figure)
			}
		}
	}
	fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("---|", len(results)))
	for _, row := range rows {
		fmt.Fprintf(out, "| %s, %s |", row.Name, row.Unit)
		for _, result := range results {
			at := slices.IndexFunc(result.Figures, func(figure Figure) bool { return figure.Name == row.Name })
			if at < 0 {
				fmt.Fprintf(out, " |")
			} else {
				fmt.Fprintf(out, " %s |", result.Figures[at])
			}
		}
		fmt.Fprintln(out)
	}
	for _, result := range results {
		fmt.Fprintf(out, "\n- %s: load average at its start %s", result.Product, result.Load)
		for _, figure := range result.Figures {
			if figure.Note != "" {
				fmt.Fprintf(out, "\n- %s: %s: %s", result.Product, figure.Name, figure.Note)
			}
		}
		for _, skipped := range result.Skipped {
			fmt.Fprintf(out, "\n- %s: **SKIPPED**: %s", result.Product, skipped)
		}
		if result.Failed != "" {
			fmt.Fprintf(out, "\n- %s: **FAILED**: %s", result.Product, strings.ReplaceAll(result.Failed, "\n", "\n    "))
		}
	}
	fmt.Fprintln(out)
}

// String is the figure as the table has it.
func (f Figure) String() string {
	sorted := slices.Sorted(slices.Values(f.Values))
	n := len(sorted)
	if n == 1 {
		return number(sorted[0])
	}
	return fmt.Sprintf("%s (%s; %s to %s; %d)", number(sorted[(n-1)/2]), number(Mean(sorted)), number(sorted[0]), number(sorted[n-1]), n)
}

// Mean is that of some values; of none it is 0.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(max(len(values), 1))
}

// number writes three significant digits, and whole numbers whole.
func number(value float64) string {
	if value == math.Trunc(value) || math.Abs(value) >= 100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'f', 2-int(math.Floor(math.Log10(math.Abs(value)))), 64)
}
