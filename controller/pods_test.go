package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"

	"github.com/configstamp/configstamp/internal/reason"
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
func TestPods_WithoutTheRightToListThem(t *testing.T) {
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
		if failing := w.controller.waits.Tally(); len(failing) > 0 {
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
func TestPods_ThatCannotBeListed(t *testing.T) {
	w, at := pausedFleet(t)
	w.edit(at, w.newContent())
	w.pass(10 * time.Minute)
	w.unseen = apierrors.NewInternalError(errors.New("etcd is away"))
	delete(w.apps[w.names[3]].settings, "configstamp.dev/pause")
	w.lead()
	w.pass(12 * time.Hour)
	w.wantHeard("ReadmissionFailing", 1, "the API server failed: InternalError (500)")
	w.unseen = nil
	w.pass(2 * time.Minute)
	if failing := w.controller.waits.Tally()[reason.Retry.Label()]; failing.Count > 0 {
		t.Errorf("still tried again: %v", failing)
	}
}

// Pods of another workload that has the same labels, and carries the same, say nothing.
func TestPods_OfAnotherWorkload(t *testing.T) {
	w, at := fleet(t, 4, func(_ int, app *simulatedApp) { app.shares = true })
	w.edit(at, w.newContent())
	w.pass(time.Hour)
	w.wantRolls(1, 1, 1, 1)
	w.wantHeard("ChangeHalted", 0)
}

// What has no record gets one, though it is not known which pods run what was
// withdrawn.
func TestRecord_DoesNotWaitForPods(t *testing.T) {
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

// slowPages is an API server that has many pods, and takes a second for each page.
type slowPages struct{ pages int }

func (s *slowPages) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	page, next := 0, ""
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &page)
	if page++; page < s.pages {
		next = fmt.Sprint(page)
	}
	var items bytes.Buffer
	for i := range podsAtOnce {
		fmt.Fprintf(&items, `,{"metadata":{"name":"p-%d-%d"}}`, page, i)
	}
	body := fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, items.String()[1:])
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body))}, nil
}

// A DaemonSet of 5,000 pods has fifty pages, which together take as long as they take.
func TestPods_EachPageHasADeadlineOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = 50
		core, err := follow.Dynamic(&rest.Config{Host: "http://api", QPS: -1, Transport: &slowPages{pages}}, corev1.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := (&restAPI{core: core}).pods(context.Background(), "shop", "app=agent")
		if err != nil || len(pods) != pages*podsAtOnce {
			t.Errorf("%d pods, want %d: %v", len(pods), pages*podsAtOnce, err)
		}
	})
}

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
func TestNodes_OneThatIsNotReadyIsDiscountedBeforeATurn(t *testing.T) {
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

// The planner does a cycle while a look at a workload reads what it asked for.
func TestNodes_ACycleMeanwhile(t *testing.T) {
	w, at := daemons(t, 6, true)
	w.meanwhile = func() { w.controller.cycle(t.Context()) }
	w.asked = 0
	w.spoil(at)
	w.pass(3 * time.Minute)
	if panics := testutil.ToFloat64(w.controller.metrics.panics.WithLabelValues(inLook)); panics > 0 || w.asked == 0 {
		t.Errorf("%v looks panicked, and nodes were asked for %d times", panics, w.asked)
	}
	rolls := 0
	for _, app := range w.apps {
		rolls += app.rolls
	}
	if rolls != 1 {
		t.Errorf("%d have rolled, want one, which fails", rolls)
	}
}

// Whether nodes alone are lacking is asked while something waits, once a minute.
func TestNodes_AreSeldomRead(t *testing.T) {
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
