// Package hostile proves that no tenant hurts another: while one fuzzes its own
// namespace with all that the ClusterRole edit allows, an edit of another still rolls,
// no process ends, and none takes more memory than the chart gives it.
//
// Start reading at TestHostile. The other tenant is in neighbour_test.go, what the
// hostile one does in attacks_test.go and the files beside it; kubelet_test.go looks
// after the processes.
package hostile

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

var (
	seed   = flag.Uint64("seed", 1, "what the hostile tenant makes is the same for the same seed; in which order it arrives is not")
	length = flag.Duration("phase", 5*time.Minute, "how long each of the two phases is")
	only   = flag.String("only", "", "names of attacks, to have no others: hot,pins")
)

var run *harness.Run

func TestMain(m *testing.M) {
	wanted, err := shipped()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
	os.Exit(wanted.Main(m, func(r *harness.Run) error { run = r; return nil }))
}

// TestHostile compares a quiet phase with a hostile one. How long something takes is
// printed, and no verdict: that depends on the machine.
func TestHostile(t *testing.T) {
	other := settle(t)
	watched := watch(t)
	quiet := other.phase(t, watched)
	if t.Failed() {
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	enemy := invade(ctx, t, other)
	hostile := other.phase(t, watched)
	stop()
	enemy.wait()
	t.Log(compared(quiet, hostile))
	t.Log(enemy.table())
	for _, idle := range enemy.idle() {
		t.Errorf("no request of %q was accepted: it attacks nothing", idle)
	}
}

// figures are what was measured in one phase.
type figures struct {
	rolled, warned, told []time.Duration
	// unwarned are edits that came back without a warning, and untold Warning events
	// that did not come before everything had rolled.
	unwarned, untold int
	peaks            map[string]int64   // bytes, by process
	seconds          map[string]float64 // of CPU, by process
}

// compared is the table that people read.
func compared(quiet, hostile figures) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight|tabwriter.Debug)
	fmt.Fprintln(table, "\tquiet: times\tp50 ms\tp95 ms\tmax ms\thostile: times\tp50 ms\tp95 ms\tmax ms\t")
	for _, row := range []struct {
		name           string
		quiet, hostile []time.Duration
	}{
		{"edit to last template", quiet.rolled, hostile.rolled},
		{"warning to who edits", quiet.warned, hostile.warned},
		{"Warning event", quiet.told, hostile.told},
	} {
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", row.name, spread(row.quiet), spread(row.hostile))
	}
	_ = table.Flush() // into memory
	fmt.Fprintf(&text, "edits without a warning: %d, then %d; Warning events that were late: %d, then %d\n", quiet.unwarned, hostile.unwarned, quiet.untold, hostile.untold)
	for _, process := range run.Product.All() {
		name := process.Name
		fmt.Fprintf(&text, "%s: at most %d MiB, then %d; %.1f s of CPU, then %.1f\n", name, quiet.peaks[name]>>20, hostile.peaks[name]>>20, quiet.seconds[name], hostile.seconds[name])
	}
	return "\n" + text.String()
}

// spread are four columns of durations.
func spread(took []time.Duration) string {
	if len(took) == 0 {
		return "0\t\t\t"
	}
	sorted := slices.Sorted(slices.Values(took))
	at := func(percent int) int64 { return sorted[(percent*len(sorted)+99)/100-1].Milliseconds() }
	return fmt.Sprintf("%d\t%d\t%d\t%d", len(sorted), at(50), at(95), at(100))
}
