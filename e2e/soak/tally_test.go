package soak

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// tally counts admissions, by the phase in which they began.
type tally struct {
	mu     sync.Mutex
	phases []*phase
}

// phase is a time in which one thing was done to the installation.
type phase struct {
	name, does string
	began      time.Time
	lasted     time.Duration
	took       []time.Duration
	// failed is what went wrong, and lost what went wrong by the death of the process that was asked.
	failed, lost []string
}

// begin ends the phase before.
func (t *tally) begin(name, does string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if len(t.phases) > 0 {
		last := t.phases[len(t.phases)-1]
		last.lasted = now.Sub(last.began)
	}
	t.phases = append(t.phases, &phase{name: name, does: does, began: now})
}

// current is the phase to which what begins now belongs.
func (t *tally) current() *phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phases[len(t.phases)-1]
}

// add counts an admission; problem is nil if all was well.
func (t *tally) add(p *phase, what string, began time.Time, problem error, lost bool) {
	took := time.Since(began)
	t.mu.Lock()
	defer t.mu.Unlock()
	p.took = append(p.took, took)
	if problem == nil {
		return
	}
	text := fmt.Sprintf("%s (%s, after %s): %s: %v", began.Format("15:04:05.000"), p.name, took.Round(time.Millisecond), what, problem)
	if lost {
		p.lost = append(p.lost, text)
	} else {
		p.failed = append(p.failed, text)
	}
}

// count is how many admissions there were.
func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := 0
	for _, p := range t.phases {
		count += len(p.took)
	}
	return count
}

// failures are those of all phases.
func (t *tally) failures() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, p := range t.phases {
		all = append(all, p.failed...)
	}
	return all
}

// losses are those of all phases.
func (t *tally) losses() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, p := range t.phases {
		all = append(all, p.lost...)
	}
	return all
}

// table is what people read.
func (t *tally) table() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.Debug)
	fmt.Fprintln(table, "meanwhile\tseconds\tadmissions\tfailed\tlost\tp50 ms\tp99 ms\tmax ms\twhat was done")
	var took []time.Duration
	failed, lost, lasted := 0, 0, time.Duration(0)
	row := func(name string, lasted time.Duration, failed, lost int, took []time.Duration, does string) {
		sorted := slices.Sorted(slices.Values(took))
		fmt.Fprintf(table, "%s\t%.0f\t%d\t%d\t%d\t%.1f\t%.0f\t%.0f\t%s\n", name, lasted.Seconds(), len(took), failed, lost,
			milliseconds(sorted, 50), milliseconds(sorted, 99), milliseconds(sorted, 100), does)
	}
	for _, p := range t.phases {
		if p.lasted == 0 {
			p.lasted = time.Since(p.began)
		}
		row(p.name, p.lasted, len(p.failed), len(p.lost), p.took, p.does)
		took, lasted = append(took, p.took...), lasted+p.lasted
		failed, lost = failed+len(p.failed), lost+len(p.lost)
	}
	row("all", lasted, failed, lost, took, "")
	_ = table.Flush() // into memory
	return "\n" + text.String()
}

// milliseconds is the smallest of the sorted durations that at least percent of them do not exceed.
func milliseconds(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (percent*len(sorted) + 99) / 100
	return float64(sorted[rank-1]) / float64(time.Millisecond)
}
