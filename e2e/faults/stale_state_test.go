package faults_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/faults"
	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// Stale state: a webhook replica's memory stands still at an older version, and
// everything is admitted through it, provably fresh or not.
func TestAdmissionsThroughAWebhookThatIsBehind(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		t.Run(fmt.Sprintf("it can check: %t", fresh), func(t *testing.T) {
			product, trial := scenario(t)
			fanOut(t, trial, 4)
			goOn := holdBack(product.Webhooks[0])
			defer goOn()
			if !fresh {
				product.Webhooks[0].Proxy.Add(proxy.Rule{Match: proxy.Matching("get", "configmaps,secrets"), Before: proxy.Fail(500, "InternalError", "made by the test")})
			}
			for i := range 4 {
				end := court.Outages.Begin()
				product.Balancer.Only(1)
				end()
				harness.Must(t, trial.Set("configmap/c", value(i+1)))
				settled(t, trial)
				end = court.Outages.Begin()
				product.Balancer.Only(0)
				end()
				time.Sleep(4500 * time.Millisecond) // past the slack of an outage: what is written now counts
				// Re-admissions and new templates through the one that is behind.
				for j := range 4 {
					name := []string{"deployment/w0", "statefulset/w1", "daemonset/w2", "cronjob/w3"}[j]
					harness.Must(t, trial.Readmit(name))
				}
				harness.Must(t, trial.Patch("deployment/w0", fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"round":"%d"}}}}}`, i)))
				harness.Must(t, trial.Put(faults.Workload("StatefulSet", "w1", fmt.Sprint(i+2), faults.Reads("configmap/c")...)))
			}
			goOn()
			product.Balancer.Release()
			product.Webhooks[0].Proxy.Clear()
			trial.Judge(t, 2*soon)
		})
	}
}

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
		for _, hidden := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s (events hidden: %t)", test.name, hidden), func(t *testing.T) {
				if hidden {
					long(t, "the same with hidden events")
				}
				product, trial := scenario(t)
				fanOut(t, trial, 1)
				goOn := func() {}
				if hidden { // they never come; a list tells what is left
					for _, process := range product.All() {
						remove := process.Proxy.Add(proxy.Rule{Match: watches, Event: proxy.Hide(func(e *proxy.Event) bool { return e.Namespace == trial.Namespace })})
						defer remove()
					}
				} else {
					goOn = holdBack(product.All()...)
				}
				test.do(t, trial)
				time.Sleep(time.Second)
				for _, process := range product.All() {
					if hidden {
						process.Proxy.Clear()
					}
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
}
