package faults_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
)

// The leader's memory stands still, while others do its work.
func TestALeaderThatIsBehind(t *testing.T) {
	_, trial := scenario(t)
	fanOut(t, trial, 4)
	goOn := holdBack(leader(t))
	for i := range 3 {
		harness.Must(t, trial.Set("configmap/c", value(i+1)))
		for j := range 4 { // a person asks
			harness.Must(t, trial.Readmit([]string{"deployment/w0", "statefulset/w1", "daemonset/w2", "cronjob/w3"}[j]))
		}
		time.Sleep(500 * time.Millisecond)
	}
	goOn()
	trial.Judge(t, soon)
}

// Unobserved state: what comes and goes in a gap of the watches.
func TestUnobservedStates(t *testing.T) {
	data := func(n int) map[string]string { return value(n) }
	tests := []struct {
		name  string
		do    func(t *testing.T, trial *faults.Trial)
		rolls int
	}{
		{"one, two, three, with two hidden, roll once", func(t *testing.T, trial *faults.Trial) {
			harness.Must(t, trial.Set("configmap/c", data(2)))
			harness.Must(t, trial.Set("configmap/c", data(3)))
		}, 1},
		{"there and back rolls nothing", func(t *testing.T, trial *faults.Trial) {
			harness.Must(t, trial.Set("configmap/c", data(2)))
			harness.Must(t, trial.Set("configmap/c", data(0)))
		}, 0},
		{"deleted and made again as it was rolls nothing", func(t *testing.T, trial *faults.Trial) {
			harness.Must(t, trial.Delete("configmap/c"))
			harness.Must(t, trial.Set("configmap/c", data(0)))
		}, 0},
		{"deleted and made again with other content rolls once", func(t *testing.T, trial *faults.Trial) {
			harness.Must(t, trial.Delete("configmap/c"))
			harness.Must(t, trial.Set("configmap/c", data(2)))
		}, 1},
		{"the workload made again, and the source edited", func(t *testing.T, trial *faults.Trial) {
			harness.Must(t, trial.Delete("deployment/w0"))
			harness.Must(t, trial.Create(faults.Workload("Deployment", "w0", "1", faults.Reads("configmap/c")...)))
			harness.Must(t, trial.Set("configmap/c", data(2)))
		}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			product, trial := scenario(t)
			fanOut(t, trial, 1)
			goOn := holdBack(product.All()...)
			test.do(t, trial)
			time.Sleep(time.Second)
			for _, process := range product.All() {
				process.Proxy.Cut(watches)
			}
			goOn()
			for _, process := range product.All() {
				process.Proxy.Expire(nil)
			}
			// At the end something that is seen by all: so they are not just blind.
			harness.Must(t, trial.Create(faults.Workload("Deployment", "seen", "1", faults.Reads("configmap/seen?")...)))
			harness.Must(t, trial.Set("configmap/seen", data(1)))
			trial.Judge(t, relisted)
			wantTemplates(t, trial, "deployment/w0", 1+test.rolls)
			wantTemplates(t, trial, "deployment/seen", 2)
		})
	}
}
