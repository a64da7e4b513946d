package report

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown is the report for people.
func (r *Report) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Measurements\n\n")
	if r.Quick {
		fmt.Fprintf(&out, "**A quick run, with small sizes: for development, not for comparison.**\n\n")
	}
	fmt.Fprintf(&out, "| | |\n|---|---|\n")
	row := func(name, value string) { fmt.Fprintf(&out, "| %s | %s |\n", name, cell(value)) }
	row("command", "`"+r.Command+"`")
	row("date", r.Date.UTC().Format("2006-01-02 15:04 MST"))
	row("commit", r.Commit)
	for _, line := range r.Machine.lines() {
		row(line[0], line[1])
	}
	for _, product := range r.Products {
		row(product.Name, strings.TrimSpace(product.Version+" "+strings.Join(product.Args, " ")))
	}
	for _, product := range r.Products {
		t := r.Tally(product.Name)
		fmt.Fprintf(&out, "\n%s: %d targets reached, %d missed; %d measurements SKIPPED, %d scenarios FAILED.", product.Name, t.Reached, t.Missed, t.Skipped, t.Failed)
	}
	fmt.Fprintf(&out, "\n\nEach ratio is figure by floor, both measured in this run, compared by the number in the column *by*.\n")
	for _, scenario := range r.scenarios() {
		r.scenario(&out, scenario)
	}
	return out.String()
}

// scenarios are the names of those that ran, in order.
func (r *Report) scenarios() []string {
	var names []string
	for _, result := range r.Results {
		if !slices.Contains(names, result.Scenario) {
			names = append(names, result.Scenario)
		}
	}
	return names
}

func (r *Report) scenario(out *strings.Builder, name string) {
	first := true
	for _, result := range r.Results {
		if result.Scenario != name {
			continue
		}
		if first {
			fmt.Fprintf(out, "\n## %s\n\n%s\n", result.Title, result.Method)
			first = false
		}
		fmt.Fprintf(out, "\n### %s: %s\n\n", result.Scenario, result.Product)
		result.markdown(out)
	}
}

func (r *Result) markdown(out *strings.Builder) {
	if len(r.Figures) > 0 {
		fmt.Fprintf(out, "| figure | unit | p50 | p99 | min | max | n | floor (p50, p99) | by | ratio | target | |\n")
		fmt.Fprintf(out, "|---|---|--:|--:|--:|--:|--:|--:|---|--:|---|---|\n")
	}
	var notes []string
	for _, f := range r.Figures {
		name := cell(f.Name)
		for _, note := range []string{f.Note, floorNote(f)} {
			if note == "" {
				continue
			}
			at := slices.Index(notes, note)
			if at < 0 {
				notes = append(notes, note)
				at = len(notes) - 1
			}
			name += fmt.Sprintf(" [%d]", at+1)
		}
		floor, ratio := "", ""
		if f.Floor != nil {
			floor = number(f.Floor.P50) + ", " + number(f.Floor.P99)
		}
		if f.Ratio != nil {
			ratio = number(*f.Ratio)
		}
		v, by := f.Value, string(f.By)
		if f.By == Mean { // it has no column
			by = "mean: " + number(v.Mean)
			if f.Floor != nil {
				by += ", floor " + number(f.Floor.Mean)
			}
		}
		var targets, reached []string
		for _, target := range f.Targets {
			targets = append(targets, target.String())
			word := "**missed**"
			if target.Reached {
				word = "reached"
			}
			reached = append(reached, word)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %d | %s | %s | %s | %s | %s |\n", name, cell(f.Unit),
			number(v.P50), number(v.P99), number(v.Min), number(v.Max), v.N, floor, by, ratio, strings.Join(targets, "; "), strings.Join(reached, "; "))
	}
	if len(notes) > 0 {
		fmt.Fprintln(out)
	}
	for i, note := range notes {
		fmt.Fprintf(out, "- [%d] %s\n", i+1, note)
	}
	for _, skipped := range r.Skipped {
		fmt.Fprintf(out, "\n**SKIPPED**: %s\n", skipped)
	}
	if r.Failed != "" {
		fmt.Fprintf(out, "\n**FAILED**: %s\n", strings.ReplaceAll(r.Failed, "\n", "\n    "))
	}
	fmt.Fprintf(out, "\nTook %s s; load average at its start %s.\n", number(float64(int(r.Seconds))), r.Load)
}

func floorNote(f *Figure) string {
	if f.FloorIs == "" {
		return ""
	}
	return "floor: " + f.FloorIs
}

// cell keeps text from ending a table's cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", "\\|"), "\n", " ")
}
