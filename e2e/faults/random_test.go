package faults_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
)

var (
	seed     = flag.Int64("seed", 0, "seed of the first batch of TestRandom; 0: one by the clock")
	together = flag.Int("together", 40, "how many of them TestRandom makes at once")
	runs     = flag.Int("runs", defaultRuns(), "how many perturbed runs TestRandom makes at least; FAULTS_RUNS says the same")
)

func defaultRuns() int {
	if n, err := strconv.Atoi(os.Getenv("FAULTS_RUNS")); err == nil {
		return n
	}
	return 80
}

// TestRandom perturbs namespaces by the dozen: each has a user of its own who
// does whatever comes to his mind, and faults of its own, while mishaps befall the
// processes. What is judged is every namespace's whole history.
func TestRandom(t *testing.T) {
	product := court.Run.Exclusive(t)
	first := *seed
	if first == 0 {
		first = time.Now().Unix()
	}
	options := faults.Pinning(harness.Usual())
	options.Settle = 0
	harness.Must(t, product.Restart(t.Context(), options))
	began, done, failed := time.Now(), 0, 0
	for batch := int64(0); done < *runs && failed < 3; batch++ {
		b := &faults.Batch{Court: court, Seed: uint64(first + batch), Runs: min(*together, *runs-done)}
		failures, err := b.Run(t.Context())
		done += b.Runs
		if err != nil {
			failures = append(failures, err.Error())
		}
		if len(failures) > 0 {
			failed++
			t.Errorf("seed %d, mishaps %s:\n%s\nreplay: %s", b.Seed, b.Mishaps(), strings.Join(failures, "\n"), replay(b))
		}
		t.Logf("seed %d: %d runs, %s; %s", b.Seed, b.Runs, b.Summary(), b.Mishaps())
	}
	harness.Must(t, court.Calm(t.Context()))
	for where, text := range court.Spoken() {
		for _, leak := range judge.Leaks(where, text, judge.Marker) {
			t.Error(leak)
		}
	}
	t.Logf("%d perturbed runs in %s, %d of the batches failed", done, time.Since(began).Round(time.Second), failed)
}

func replay(b *faults.Batch) string {
	return fmt.Sprintf("CONFIGSTAMP_E2E=1 go test -count=1 -v -run 'TestRandom$' ./e2e/faults -seed=%d -runs=%d -together=%d", b.Seed, b.Runs, b.Runs)
}
