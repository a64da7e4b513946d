package faults_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/proxy"
)

// All connections stay open, and nothing comes through them, not even an end. Where a node
// in between has vanished, TCP's keep-alive finds out after 45 s. Here TCP lives, so it is the
// silence of the watches that tells, after two minutes.
func TestDeadConnectionsAreLeft(t *testing.T) {
	long(t, "a dead connection is found out after two minutes")
	product, trial := scenario(t)
	fanOut(t, trial, 4)
	for _, process := range product.All() {
		if process.Proxy.Stall() == 0 {
			t.Errorf("%s has no connection to stall", process.Name)
		}
	}
	harness.Must(t, trial.Set("configmap/c", value(1)))
	stop := court.Supervise() // a leader that cannot renew its lease ends
	defer stop()
	trial.Judge(t, 150*time.Second)
}

// Watches that neither deliver nor end, over connections that live: something
// between the API server and us is broken. No ping tells.
func TestHalfOpenWatchesAreLeft(t *testing.T) {
	long(t, "it waits for minutes")
	_, trial := scenario(t)
	fanOut(t, trial, 4)
	victim := leader(t)
	gate := &proxy.Gate{}
	gate.Close()
	t.Cleanup(gate.Open) // what waits at it would wait for ever
	begun := time.Now()
	// Only the watches that are open now: new ones work.
	victim.Proxy.Add(proxy.Rule{Match: func(r *proxy.Request) bool { return watches(r) && r.Began.Before(begun) }, Gate: gate})
	harness.Must(t, trial.Set("configmap/c", value(1)))
	trial.Judge(t, 4*time.Minute)
}
