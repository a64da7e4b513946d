package controller

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// daemons is a world in which n DaemonSets use one ConfigMap, all of them well for
// weeks, but that a node may not be ready.
func daemons(t *testing.T, n int, dead bool, prepare ...func(i int, app *simulatedApp)) (*world, rollout.SourceRef) {
	t.Helper()
	w := newWorld(t)
	w.kind, _ = workload.Builtin().Find("apps", "daemonsets")
	w.deadNode = dead
	at := w.fill(n, prepare...)
	w.pass(4 * time.Minute)
	return w, at
}

// A DaemonSet that lacks a pod on a node that is not ready is healthy before its
// turn: a bad change stops at it.
func TestANodeThatIsNotReadyIsDiscountedBeforeATurn(t *testing.T) {
	t.Run("a bad change", func(t *testing.T) {
		w, at := daemons(t, 6, true)
		w.spoil(at)
		w.pass(2 * time.Hour)
		w.wantRolls(1, 0, 0, 0, 0, 0)
		w.wantHeard("ChangeHalted", 1, "DaemonSet app-00")
		w.wantHeard("RolloutFailed", 1)
		w.lead()
		w.pass(2 * time.Hour)
		w.wantRolls(1, 0, 0, 0, 0, 0)
	})
	t.Run("a good one", func(t *testing.T) {
		w, at := daemons(t, 6, true)
		w.edit(at, w.newContent())
		w.pass(10 * time.Minute)
		w.wantRolls(repeated(6, 1)...)
		w.wantHeard("ChangeHalted", 0)
	})
	t.Run("one that crashes as well goes last", func(t *testing.T) {
		w, at := daemons(t, 6, true, func(i int, app *simulatedApp) { app.broken = i == 0 })
		w.edit(at, w.newContent())
		w.pass(20 * time.Minute)
		w.wantRolls(repeated(6, 1)...)
		w.wantHeard("ChangeHalted", 0)
	})
}

// Whether nodes alone are lacking is asked while something waits, once a minute.
func TestNodesAreSeldomAsked(t *testing.T) {
	w, at := daemons(t, 6, true)
	w.lists, w.asked = 0, 0
	w.controller.Reconsider()
	w.pass(time.Hour)
	if w.lists+w.asked > 0 {
		t.Errorf("pods were listed %d times and nodes asked %d times, though nothing was to roll", w.lists, w.asked)
	}
	w.spoil(at)
	w.pass(3 * time.Minute)
	w.mute(w.apps[w.names[0]], true) // the one that has failed is looked at all the time
	w.lists, w.asked = 0, 0
	for range 60 {
		w.controller.Reconsider()
		w.pass(10 * time.Second)
	}
	if most := 5 * 10; w.lists > most || w.asked > most {
		t.Errorf("in ten minutes pods were listed %d times and nodes asked %d times for five that wait, want at most %d", w.lists, w.asked, most)
	}
	w.wantRolls(1, 0, 0, 0, 0, 0)
}
