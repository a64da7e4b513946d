package faults

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// Tally counts what a test binary has done, to be said at its end.
type Tally struct {
	mu                       sync.Mutex
	runs, batches, scenarios int
	writes                   int
	mishaps                  int
	pins                     judge.Counts
	skipped                  []string
	began                    time.Time
}

// NewTally begins to count.
func NewTally() *Tally { return &Tally{began: time.Now()} }

// Scenario counts one.
func (t *Tally) Scenario() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.scenarios++
}

// Batch counts a batch of perturbed runs.
func (t *Tally) Batch(b *Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches++
	t.runs += b.Runs
	t.writes += b.written
	t.mishaps += len(b.mishaps)
	t.pins.Add(b.counts)
}

// Skip notes what was not done, and why.
func (t *Tally) Skip(what, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.skipped = append(t.skipped, what+": "+why)
}

// String says it.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf("%d scenarios; %d perturbed runs in %d batches with %d mishaps and %d writes judged; %s; %s; %d scenarios SKIPPED",
		t.scenarios, t.runs, t.batches, t.mishaps, t.writes, t.pins, time.Since(t.began).Round(time.Second), len(t.skipped))
	for _, one := range t.skipped {
		text += "\n  SKIPPED " + one
	}
	return strings.TrimSpace(text)
}
