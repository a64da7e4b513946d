package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// discovered is what the API server says of the group of Argo Rollouts.
type discovered struct{ err error }

func (d discovered) ServerResourcesForGroupVersionWithContext(context.Context, string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "rollouts", Kind: "Rollout", Namespaced: true}}}, d.err
}

// customs is a controller of Argo Rollouts, of which the API server lists one when
// told to.
func customs(t *testing.T, found discovered, list <-chan struct{}) *Controller {
	t.Helper()
	server := fakeapi.Piped(t)
	server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		default:
			select {
			case <-list:
			case <-r.Context().Done():
			}
			fmt.Fprint(w, `{"kind": "RolloutList", "apiVersion": "argoproj.io/v1alpha1", "metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"namespace": "shop", "name": "canary", "resourceVersion": "4"}}]}`)
		}
		return true
	}
	kind, _ := workload.Known().Find("argoproj.io", "rollouts")
	c := newCluster(t)
	made, err := New(server.Config(), found, Options{Kinds: workload.Table{kind}, Policy: c.policy, Workers: 1, Clock: clock.RealClock{}},
		c, c, c, events.NewFakeRecorder(100), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// One of a custom kind may have failed with a change, and halts it for all others.
func TestCustomKinds_NobodyLeadsBeforeTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := make(chan struct{})
		c := customs(t, discovered{}, list)
		started(t, &house{Controller: c})
		time.Sleep(customsWithin - time.Second)
		if c.leads.Load() {
			t.Error("it leads, and does not know of Argo Rollouts yet")
		}
		close(list)
		eventually(t, "it leads", c.leads.Load)
		if n := c.index.Len(); n != 1 {
			t.Errorf("it began to lead with %d workloads, want one", n)
		}
	})
}

func TestCustomKinds_OneThatNobodyTellsOfIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := customs(t, discovered{errors.New("the server is currently unable to handle the request")}, nil)
		defer c.queue.ShutDown() // Run would
		defer c.cycles.ShutDown()
		filled := make(chan bool, 1)
		go func() { filled <- c.fill(t.Context()) }()
		time.Sleep(customsWithin - time.Second)
		select {
		case <-filled:
			t.Fatal("it is not waited for")
		default:
		}
		time.Sleep(2 * time.Second)
		select {
		case ok := <-filled:
			if !ok {
				t.Error("nobody has told it to end")
			}
		default:
			t.Error("it is waited for for ever")
		}
	})
}

// machines is a world in which n workloads of a custom kind, as --workload gives it,
// use one ConfigMap, all of them ready for weeks. Their status does not say which
// generation it speaks of. Their controller looks a while after a patch.
func machines(t *testing.T, n int, condition string, looksAfter time.Duration) (*world, rollout.SourceRef) {
	t.Helper()
	w := newWorld(t)
	kind, err := workload.ParseKind("example.com/v1/machines=spec.template" + condition)
	if err != nil {
		t.Fatal(err)
	}
	deployments := w.kind
	w.kind = kind
	w.before = func() {
		w.at(0, func() { // when the patch is stored
			for _, ref := range w.names {
				if app := w.apps[ref]; app.looked < app.rolls {
					w.at(looksAfter, func() {
						app.looked = app.rolls
						app.version++
						w.see(ref)
					})
				}
			}
		})
	}
	at := w.fill(n)
	w.kind = deployments
	return w, at
}

// When it was Ready with the content before, that says nothing of the new one.
func TestCustomKinds_NotHealthyBeforeTheirControllerHasLooked(t *testing.T) {
	const looksAfter = 25 * time.Second // much longer than the soak
	t.Run("a bad change", func(t *testing.T) {
		w, at := machines(t, 5, ",rollout=Ready", looksAfter)
		w.spoil(at)
		w.pass(time.Hour)
		w.wantRolls(1, 0, 0, 0, 0)
		w.wantHeard("ChangeHalted", 1, "machines app-00")
	})
	t.Run("a good one", func(t *testing.T) {
		w, at := machines(t, 5, ",rollout=Ready", looksAfter)
		w.edit(at, w.newContent())
		w.pass(looksAfter)
		w.wantRolls(1, 0, 0, 0, 0)
		w.pass(20 * time.Second)
		w.wantRolls(1, 1, 1, 0, 0)
		w.pass(time.Hour)
		w.wantRolls(1, 1, 1, 1, 1)
		w.wantHeard("ChangeHalted", 0)
	})
	t.Run("the answer to the patch is lost", func(t *testing.T) {
		w, at := machines(t, 5, ",rollout=Ready", looksAfter)
		w.answers = func(*simulatedApp) error { return errUncertain }
		w.spoil(at)
		w.pass(time.Hour)
		w.wantRolls(1, 0, 0, 0, 0)
	})
}

// A custom kind without a condition is settled at the first change of its status: one
// at a time, though others have proven the change.
func TestCustomKinds_ThatTellNothingRollOneAtATime(t *testing.T) {
	w, at := machines(t, 6, "", 20*time.Second)
	for _, name := range []string{"web-0", "web-1", "web-2", "web-3"} {
		ref := workload.Ref{Kind: w.kind, Namespace: "shop", Name: name}
		w.add(&simulatedApp{ref: ref, sources: []checksum.Source{at.Source}})
		w.see(ref)
	}
	w.edit(at, w.newContent())
	var begun []time.Time
	for range 600 {
		w.pass(time.Second)
		for _, ref := range w.names[:6] {
			if at := w.apps[ref].rolled; !at.IsZero() && !slices.Contains(begun, at) {
				begun = append(begun, at)
			}
		}
	}
	w.wantRolls(repeated(10, 1)...)
	slices.SortFunc(begun, time.Time.Compare)
	if len(begun) != 6 {
		t.Fatalf("six rolled at %d moments", len(begun))
	}
	for i := range begun[1:] {
		if wait := begun[i+1].Sub(begun[i]); wait < 20*time.Second {
			t.Errorf("one began %s after the one before", wait)
		}
	}
}
