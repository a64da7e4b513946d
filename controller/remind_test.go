package controller

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/configstamp/configstamp/internal/workload"
)

// What a hundred workloads wait for is one line of the log, and one event each half hour, where
// it stands or on the source.
func TestRemind_AHundredHeldWorkloads(t *testing.T) {
	for sentence, test := range map[string]struct {
		settings map[string]string // of the namespace
		again    string
		source   string
	}{
		"paused with their Namespace": {map[string]string{"configstamp.dev/pause": "true"},
			"Normal RolloutHeld 100 workloads are waiting, the first for 30m: Deployment d00, Deployment d01, Deployment d02, Deployment d03, Deployment d04 and 95 more. " +
				"The event on Deployment d00 said: configmap/c changed, and this workload rolls out later: configstamp.dev/pause on the Namespace", `source=""`},
		"paused themselves": {nil,
			"Normal RolloutHeld 100 workloads are waiting, the first for 30m: Deployment d00, Deployment d01, Deployment d02, Deployment d03, Deployment d04 and 95 more. " +
				"The event on Deployment d00 said: configmap/c changed, and this workload rolls out later: configstamp.dev/pause", `source="configmap/c"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var log bytes.Buffer
			ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
			c := newCluster(t)
			c.write("c", map[string]string{"k": "1"})
			users := make([]workload.Ref, 100)
			for i := range users {
				users[i] = c.deploy(fmt.Sprintf("d%02d", i), "c")
			}
			c.settings = test.settings
			h := newHouse(t, c)
			look := func() {
				for _, user := range users {
					h.mustSync(t, user)
					h.happened()
				}
			}
			look()
			for _, user := range users {
				if test.settings == nil {
					c.annotate(user, "pause", "true")
					h.see(t, user)
				}
			}
			c.write("c", map[string]string{"k": "2"})
			h.rest()
			look()
			tell := func(wantLines int, wantSaid ...string) {
				t.Helper()
				log.Reset()
				h.tellStanding(ctx)
				_, said := h.happened()
				if lines := strings.Count(log.String(), "\n"); lines != wantLines || fmt.Sprint(said) != fmt.Sprint(wantSaid) {
					t.Errorf("said %q, want %q; the log has %d lines, want %d", said, wantSaid, lines, wantLines)
				}
			}
			tell(1)
			for _, word := range []string{`why="pause"`, `namespace="shop"`, test.source, `workloads=100`, "Deployment d42", "Deployment d99"} {
				if !strings.Contains(log.String(), word) {
					t.Errorf("the log lacks %s: %s", word, &log)
				}
			}
			h.clock.Step(29 * time.Minute)
			look()
			tell(0)
			h.clock.Step(time.Minute)
			tell(1, test.again)
			h.clock.Step(time.Minute)
			tell(0)
			h.clock.Step(29 * time.Minute)
			tell(1, strings.Replace(test.again, "30m", "60m", 1))
			c.write("c", map[string]string{"k": "1"})
			look()
			h.clock.Step(time.Hour)
			tell(0)
		})
	}
}

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
	h.mustSync(t, d)
	h.tellStanding(t.Context())
	h.happened()
	h.clock.Step(30 * time.Minute)
	h.tellStanding(t.Context())
	if _, said := h.happened(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning RecordingBlocked 1 workload is waiting, the first for 30m: Deployment d. The event on Deployment d said: checksums are not recorded") {
		t.Errorf("said %q", said)
	}
	if blocked := h.waits.Tally()["blocked"].Count; blocked != 1 {
		t.Errorf("%d are blocked, by the metrics", blocked)
	}
}
