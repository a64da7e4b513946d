package faults_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
)

var workloads = flag.Int("workloads", 1000, "how many workloads use one source in TestOneSourceOfManyWorkloads; 300 in the short form")

// One source of many workloads, and the leader dies in the midst of its fan-out,
// twice.
func TestOneSourceOfManyWorkloadsWhileLeadersDie(t *testing.T) {
	count := *workloads
	if testing.Short() {
		count = min(count, 300)
	}
	_, trial := scenario(t)
	began := time.Now()
	fanOut(t, trial, count)
	t.Logf("%d workloads made and true after %.1fs", count, time.Since(began).Seconds())
	for i, k := range []int{count / 4, count / 3} {
		killAround(t, k, i == 0, func() { harness.Must(t, trial.Set("configmap/c", value(i+1))) })
	}
	began = time.Now()
	trial.Judge(t, 3*time.Minute)
	t.Logf("judged after %.1fs", time.Since(began).Seconds())
}

// A source that is written a hundred times a second is bounded by settling.
func TestAHotSource(t *testing.T) {
	_, trial := scenario(t)
	fanOut(t, trial, 2)
	began, edits := time.Now(), 0
	for time.Since(began) < 10*time.Second {
		edits++
		harness.Must(t, trial.Set("configmap/c", value(edits)))
		time.Sleep(max(0, time.Duration(edits)*10*time.Millisecond-time.Since(began)))
	}
	t.Logf("%d edits in %.1fs", edits, time.Since(began).Seconds())
	trial.Judge(t, soon)
	history, _, err := trial.History()
	harness.Must(t, err)
	// The longest settle is ten times 300 ms; one more for what came after.
	if got, most := history.Templates("deployment/w0")-1, int(time.Since(began)/(10*harness.Settle))+2; got > most || got < 1 {
		t.Errorf("it rolled %d times, want 1 to %d", got, most)
	}
}

// 64 MiB are enough for 2,000 sources and a fan-out. The binary is one without
// the race detector, which takes several times as much.
func TestMemoryStaysUnder64MiB(t *testing.T) {
	long(t, "it builds another binary, and makes thousands of sources")
	product, trial := scenario(t)
	binary := filepath.Join(t.TempDir(), "configstamp")
	harness.Must(t, court.Run.BuildProduct(t.Context(), binary, "-race=false"))
	for i := range 2000 {
		data := value(i)
		data["filler"] = fmt.Sprintf("%04096d", i)
		harness.Must(t, trial.Set(fmt.Sprintf("%s/many-%d", []string{"configmap", "secret"}[i%2], i), data))
	}
	for _, process := range product.All() {
		harness.Must(t, process.Stop())
		process.Use(t, binary)
	}
	t.Setenv("GOMEMLIMIT", "56MiB")
	harness.Must(t, product.Start(t.Context()))
	fanOut(t, trial, 100)
	harness.Must(t, trial.Set("configmap/c", value(1)))
	trial.Judge(t, 2*soon)
	for _, process := range product.All() {
		peak, err := process.PeakMemory()
		harness.Must(t, err)
		t.Logf("%s held %d MiB at most", process.Name, peak>>20)
		if peak > 64<<20 {
			t.Errorf("%s held %d MiB, want at most 64", process.Name, peak>>20)
		}
	}
}
