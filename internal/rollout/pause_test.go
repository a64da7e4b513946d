package rollout_test

import (
	"fmt"
	"testing"
	"time"
)

// A pause in the middle of a change stops it, with workloads that wait for their turn
// and with those whose turn has come. When it ends, the rest rolls, each once.
func TestPause_InTheMiddleOfAChange(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 12 {
		w.add(deployment("shop", fmt.Sprintf("app-%02d", n), "web"))
	}
	w.lead()
	w.pass(2 * time.Minute)
	all := func(paused bool) {
		for _, a := range w.apps {
			a.paused = paused
			w.see(a)
		}
	}
	rolled := func() (rolled int) {
		for _, a := range w.apps {
			if len(w.untrue(a)) == 0 {
				rolled++
			}
		}
		return rolled
	}
	w.edit(web, w.content(fine))
	for begin := w.now; rolled() < 2 && w.now.Sub(begin) < time.Hour; {
		w.pass(time.Second)
	}
	then := rolled()
	if then < 2 || then == 12 {
		t.Fatalf("the scenario is wrong: %d have rolled", then)
	}
	all(true)
	w.pass(6 * time.Hour)
	if now := rolled(); now != then {
		t.Errorf("%d have rolled, %d when it was paused", now, then)
	}
	all(false)
	w.pass(time.Hour)
	if now := rolled(); now != 12 {
		t.Errorf("%d of 12 have rolled, an hour after the pause has ended", now)
	}
}
