package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
)

// undo brings a workload's template back to some records, as the webhook answers an undo that
// it believes: what its source holds now is declined.
func (w *world) undo(app *simulatedApp, at rollout.SourceRef, to checksum.Records) {
	app.records = to
	app.records.Declined = checksum.Declined{at.Source: {w.ring.Digest("shop", checksum.Selection{Source: at.Source, Required: true, All: true}, w.contents[at])}}.String()
	w.healthyAgain(app)
}

// accept is what comes of an empty patch by the field manager configstamp-accept.
func (w *world) accept(app *simulatedApp) {
	app.records.Declined = ""
	w.stamp(app)
	w.healthyAgain(app)
}

func (w *world) healthyAgain(app *simulatedApp) {
	app.version++
	app.rolled, app.well = w.clock.Now(), w.clock.Now().Add(5*time.Second)
	w.see(app.ref)
	w.at(5*time.Second, func() { app.version++; w.see(app.ref) })
}

// Somebody undoes a workload that has a good change, and accepts it later: meanwhile nobody
// rolls, and then everybody.
func TestDeclined_UntilSomebodyAccepts(t *testing.T) {
	w, at := fleet(t, 4)
	first := w.apps[w.names[0]]
	was := first.records
	w.edit(at, w.newContent())
	w.pass(5 * time.Second)
	w.wantRolls(1, 0, 0, 0)
	w.undo(first, at, was)
	w.pass(2 * time.Hour)
	w.wantRolls(1, 0, 0, 0)
	w.wantHeard("ChangeHalted", 1)
	w.wantHeard("StaleByUndo", 0)
	w.controller.tellStale(t.Context())
	w.wantHeard("StaleByUndo", 0)
	w.pass(23 * time.Hour)
	w.controller.tellStale(t.Context())
	w.pass(time.Hour)
	w.controller.tellStale(t.Context())
	w.wantHeard("StaleByUndo", 1, "configmap/shared changed 25h ago, and an undo keeps this workload on older content; a new certificate or password may be waiting. To take what is there now: kubectl configstamp accept deployment/app-00 -n shop")
	if got := w.controller.waits.Older.Oldest(); got.IsZero() {
		t.Error("nobody has older content")
	}
	w.accept(first)
	w.pass(20 * time.Minute)
	w.wantRolls(1, 1, 1, 1)
	w.wantHeard("ChangeResumed", 1, "Deployment app-00 does not halt it any more")
	if got := w.controller.waits.Older.Oldest(); !got.IsZero() {
		t.Errorf("somebody has older content since %s", got)
	}
}

// A pod of a held workload that pins all that has changed reads what it was rolled out with.
func TestMeanwhile(t *testing.T) {
	a, b := checksum.Source{Kind: checksum.ConfigMap, Name: "a"}, checksum.Source{Kind: checksum.ConfigMap, Name: "b"}
	records := checksum.Records{Pins: map[string]string{checksum.PinsAnnotation: `{"configmap/a":"a-0123456789abcdef0123 startup"}`}}
	for text, untrue := range map[string][]checksum.Source{"old content": {a}, "new content": {a, b}} {
		if got := meanwhile(records, untrue); !strings.HasSuffix(got, text) {
			t.Errorf("%v: %q, want the %s", untrue, got, text)
		}
	}
}
