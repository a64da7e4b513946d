package controller

import (
	"strings"
	"testing"
	"time"
)

// A halted change is told again on its source, with who failed, and how to go on.
func TestRemind_OfAHalt(t *testing.T) {
	w, at := fleet(t, 5)
	bad := w.newContent()
	w.bad[bad] = true
	w.edit(at, bad)
	w.pass(10 * time.Minute)
	w.wantHeard("ChangeHalted", 1)
	for range 61 {
		w.controller.tellStanding(t.Context())
		w.pass(time.Minute)
	}
	w.wantHeard("ChangeHalted", 3, "ConfigMap shared: 4 workloads are waiting, the first for ", "The event on Deployment app-01 said: configmap/shared changed, but this workload does not roll out: Deployment app-00 has failed with this change", "configstamp.dev/resume")
}

// The reminder works while this process leads.
func TestRemind_WhileItLeads(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	d := c.deploy("d", "c")
	c.annotate(d, "pause", "true")
	h := adopted(t, c)
	c.write("c", map[string]string{"k": "2"})
	h.rest()
	h.mustSync(t, d)
	h.happened()
	started(t, h)
	eventually(t, "people are reminded", func() bool {
		h.clock.Step(time.Minute)
		_, said := h.happened()
		return strings.Contains(strings.Join(said, "\n"), "1 workload is waiting")
	})
}

// A recording that would bring somebody else's change waits, and people are reminded, too.
func TestRemind_OfARecordingThatIsBlocked(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	d := c.deploy("d", "c")
	c.rider = "x"
	h := newHouse(t, c)
	for range 3 {
		h.mustSync(t, d)
	}
	if _, said := h.happened(); len(said) != 1 {
		t.Errorf("said %q, want a single one", said)
	}
	h.tellStanding(t.Context())
	h.clock.Step(30 * time.Minute)
	h.tellStanding(t.Context())
	if _, said := h.happened(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning RecordingBlocked 1 workload is waiting, the first for 30m: Deployment d. The event on Deployment d said: checksums are not recorded") {
		t.Errorf("said %q", said)
	}
	if blocked := h.waits.Tally()["blocked"].Count; blocked != 1 {
		t.Errorf("%d are blocked, by the metrics", blocked)
	}
}
