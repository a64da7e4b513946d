package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/internal/rollout"

	"github.com/configstamp/configstamp/checksum"
)

var errNoRight = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right"))

// pausedFleet is a fleet of four, the last of them paused for a day.
func pausedFleet(t *testing.T) (*world, rollout.SourceRef) {
	t.Helper()
	return fleet(t, 4, func(i int, app *simulatedApp) {
		if i == 3 {
			app.settings = map[string]string{"configstamp.dev/pause": "2026-07-02T00:00:00Z"}
		}
	})
}

// Without the right to list pods, all goes on by what workloads tell themselves.
func TestWithoutTheRightToListPods(t *testing.T) {
	t.Run("a good change", func(t *testing.T) {
		w, at := pausedFleet(t)
		w.unseen = errNoRight
		w.edit(at, w.newContent())
		w.pass(10 * time.Minute)
		w.wantRolls(1, 1, 1, 0)
		w.wantHeard("PodsUnseen", 3, "give configstamp's service account the right to list pods")
		w.edit(at, w.newContent())
		w.pass(10 * time.Minute)
		w.wantHeard("PodsUnseen", 3)
		w.lead()
		w.until(time.Date(2026, 7, 2, 0, 0, 20, 0, time.UTC))
		w.wantRolls(2, 2, 2, 1)
		w.pass(24 * time.Hour)
		w.wantHeard("PodsUnseen", 3+4) // as the new leader found
		w.wantHeard("ReadmissionFailing", 0)
		if failing := w.controller.waits.byLabel(); len(failing) > 0 {
			t.Errorf("left over: %v", failing)
		}
	})
	t.Run("a new leader makes nobody wait", func(t *testing.T) {
		w, at := pausedFleet(t)
		w.unseen = errNoRight
		w.edit(at, w.newContent())
		w.pass(10 * time.Minute)
		delete(w.apps[w.names[3]].settings, "configstamp.dev/pause")
		w.lead()
		w.pass(5 * time.Second)
		w.wantRolls(1, 1, 1, 1)
	})
	t.Run("a bad change", func(t *testing.T) {
		w, at := daemons(t, 4, false) // which have no deadline of their own
		w.unseen = errNoRight
		w.spoil(at)
		w.pass(time.Hour)
		w.wantRolls(1, 0, 0, 0)
		w.wantHeard("ChangeHalted", 1, "no progress")
	})
	t.Run("one that is put back while it waits", func(t *testing.T) {
		w, at := pausedFleet(t)
		good := w.contents[at]
		w.edit(at, w.newContent())
		w.pass(time.Minute)
		w.unseen = errNoRight
		w.edit(at, good)
		w.pass(24 * time.Hour)
		w.wantHeard("ReadmissionFailing", 0)
		w.wantHeard("PodsRunWithdrawnContent", 0)
	})
}

// One whose pods cannot be looked at for another reason is tried again for ever, and
// people are told once.
func TestPodsThatCannotBeListed(t *testing.T) {
	w, at := pausedFleet(t)
	w.edit(at, w.newContent())
	w.pass(10 * time.Minute)
	w.unseen = apierrors.NewInternalError(errors.New("etcd is away"))
	delete(w.apps[w.names[3]].settings, "configstamp.dev/pause")
	w.lead()
	w.pass(12 * time.Hour)
	w.wantHeard("ReadmissionFailing", 4, "the API server failed: InternalError (500)")
	w.unseen = nil
	w.pass(2 * time.Minute)
	if failing := w.controller.waits.byLabel()[checksum.Retry.Label()]; failing.count > 0 {
		t.Errorf("still tried again: %v", failing)
	}
}

// What has no record gets one, though it is not known which pods run what was
// withdrawn.
func TestRecordingsDoNotWaitForPods(t *testing.T) {
	cluster := newCluster(t)
	cluster.write("c", map[string]string{"k": "1"})
	cluster.write("later", map[string]string{"k": "1"})
	d := cluster.deploy("d", "c")
	h := adopted(t, cluster)
	cluster.objects[d]["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": map[string]any{"app": "d"}}
	cluster.annotate(d, "pause", "true")
	h.see(t, d)
	cluster.write("c", map[string]string{"k": "2"})
	h.rest()
	h.mustSync(t, d)
	cluster.write("c", map[string]string{"k": "1"})
	cluster.annotate(d, "also", "configmap/later")
	h.see(t, d)
	h.happened()
	cluster.unseen = errLost
	if _, err := h.sync(t.Context(), d); !errors.Is(err, errLost) {
		t.Errorf("got %v, want %v", err, errLost)
	}
	if calls, said := h.happened(); !slices.Contains(calls, "configstamp-record d") {
		t.Errorf("nothing was recorded: %v, %v", calls, said)
	}
}
