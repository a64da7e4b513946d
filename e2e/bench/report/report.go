// Package report holds what was measured, with all that a reader needs to judge
// it, and writes it down as JSON and Markdown. It knows no cluster and no
// product. Start reading at Report; a scenario makes Results of Figures
// (figure.go).
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Report is one run.
type Report struct {
	Command  string    `json:"command"`
	Date     time.Time `json:"date"`
	Commit   string    `json:"commit"`
	Quick    bool      `json:"quick"`
	Machine  Machine   `json:"machine"`
	Products []Product `json:"products"`
	Results  []*Result `json:"results"`
}

// Product is one of those that were measured.
type Product struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Args    []string `json:"args,omitempty"`
}

// Result is what one scenario found out about one product.
type Result struct {
	Scenario string    `json:"scenario"`
	Title    string    `json:"title"`
	Method   string    `json:"method"`
	Product  string    `json:"product"`
	Load     string    `json:"load"` // the load average when it began
	Seconds  float64   `json:"seconds"`
	Figures  []*Figure `json:"figures,omitempty"`
	// Skipped says what the product cannot do; Failed what went wrong.
	Skipped []string `json:"skipped,omitempty"`
	Failed  string   `json:"failed,omitempty"`
}

// Add adds a figure.
func (r *Result) Add(figures ...*Figure) { r.Figures = append(r.Figures, figures...) }

// Skip says loudly that something could not be measured.
func (r *Result) Skip(format string, args ...any) {
	r.Skipped = append(r.Skipped, fmt.Sprintf(format, args...))
}

// Tally counts targets and what was left out.
type Tally struct {
	Reached, Missed, Skipped, Failed int
}

// Tally counts those of one product.
func (r *Report) Tally(product string) Tally {
	var t Tally
	for _, result := range r.Results {
		if result.Product != product {
			continue
		}
		t.Skipped += len(result.Skipped)
		if result.Failed != "" {
			t.Failed++
		}
		for _, figure := range result.Figures {
			for _, target := range figure.Targets {
				if target.Reached {
					t.Reached++
				} else {
					t.Missed++
				}
			}
		}
	}
	return t
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
	files := map[string][]byte{"report.json": append(text, '\n'), "report.md": []byte(r.Markdown())}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}
