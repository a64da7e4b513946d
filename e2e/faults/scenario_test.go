package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// soon is how long everything may take to carry the truth after a fault that
// needs no lease to run out and no long backoff to end.
const soon = 45 * time.Second

// relisted is how long it may take when watches have failed again and again:
// client-go waits longer each time, up to a minute, and forgets after two.
const relisted = 80 * time.Second

// scenario has the product for itself, under supervision, and a namespace of its
// own; whatever it disturbs is calm again at its end.
func scenario(t *testing.T) (*harness.Product, *faults.Trial) {
	t.Helper()
	product := court.Run.Exclusive(t)
	t.Cleanup(func() { harness.Must(t, court.Calm(context.Background())) })
	return product, court.Trial(t)
}

// long skips what does not fit into the short form, and says so.
func long(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("SKIPPED in the short form: %s", why)
	}
}

// value is a content that is told from all others by a number.
func value(n int) map[string]string {
	return map[string]string{"k": fmt.Sprintf("%s-%d", judge.Marker, n)}
}

// fanOut makes ConfigMap c and workloads of every kind that use it.
func fanOut(t *testing.T, trial *faults.Trial, count int) {
	t.Helper()
	harness.Must(t, trial.Set("configmap/c", value(0)))
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"}
	for i := range count {
		harness.Must(t, trial.Create(faults.Workload(kinds[i%len(kinds)], fmt.Sprintf("w%d", i), "1", faults.Reads("configmap/c")...)))
	}
	settled(t, trial)
}

// settled waits until everything carries the truth.
func settled(t *testing.T, trial *faults.Trial) {
	t.Helper()
	untrue, err := trial.Converge(t.Context(), 90*time.Second)
	harness.Must(t, err)
	if len(untrue) > 0 {
		t.Fatalf("%v\n%s", untrue, trial.Report())
	}
}

// wantTemplates checks how many templates a workload has had, its first included.
func wantTemplates(t *testing.T, trial *faults.Trial, workload string, want int) {
	t.Helper()
	history, _, err := trial.History()
	harness.Must(t, err)
	if got := history.Templates(workload); got != want {
		t.Errorf("%s has had %d templates, want %d\n%s", workload, got, want, trial.Report())
	}
}

// leader is the controller that works.
func leader(t *testing.T) *harness.Process {
	t.Helper()
	found, err := court.Leader(t.Context())
	harness.Must(t, err)
	return found
}

// rolling accepts re-admissions that have an effect.
func rolling(r *proxy.Request) bool {
	return r.Verb == "patch" && r.Query.Get("fieldManager") == "configstamp" && !r.DryRun()
}

// watches accepts all watches.
func watches(r *proxy.Request) bool { return r.Verb == "watch" }

// holdBack makes processes blind to what happens, until they are told to go on.
func holdBack(processes ...*harness.Process) (goOn func()) {
	gate := &proxy.Gate{}
	gate.Close()
	var undo []func()
	for _, process := range processes {
		undo = append(undo, process.Proxy.Add(proxy.Rule{Match: watches, Gate: gate}))
	}
	return func() {
		for _, remove := range undo {
			remove()
		}
		gate.Open()
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
