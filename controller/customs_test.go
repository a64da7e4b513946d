package controller

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/internal/condense/fakeapi"
	"github.com/configstamp/configstamp/internal/workload"
)

// discovered is what the API server says of the group of Argo Rollouts.
type discovered struct{ err error }

func (d discovered) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "rollouts", Kind: "Rollout", Namespaced: true}}}, d.err
}

// customs is a controller of Argo Rollouts, of which the API server lists one when
// told to.
func customs(t *testing.T, found discovered, clock clock.WithTicker, list <-chan struct{}) *Controller {
	t.Helper()
	server := fakeapi.New(t)
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
	made, err := New(server.Config(), found, Options{Kinds: workload.Table{kind}, Policy: c.policy, Workers: 1, Clock: clock},
		c, c, c, events.NewFakeRecorder(100), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// One of a custom kind may have failed with a change, and halts it for all others.
func TestNobodyLeadsBeforeCustomKindsAreRead(t *testing.T) {
	list := make(chan struct{})
	c := customs(t, discovered{}, clock.RealClock{}, list)
	started(t, &house{Controller: c})
	time.Sleep(300 * time.Millisecond)
	if c.leads.Load() {
		t.Error("it leads, and does not know of Argo Rollouts yet")
	}
	close(list)
	eventually(t, "it leads", c.leads.Load)
	if n := c.index.count(); n != 1 {
		t.Errorf("it began to lead with %d workloads, want one", n)
	}
}

func TestACustomKindThatNobodyTellsOfIsNotWaitedForLong(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	c := customs(t, discovered{errors.New("the server is currently unable to handle the request")}, clock, nil)
	filled := make(chan bool, 1)
	go func() { filled <- c.fill(t.Context()) }()
	select {
	case <-filled:
		t.Fatal("it is not waited for")
	case <-time.After(300 * time.Millisecond):
	}
	clock.Step(customsWithin)
	select {
	case ok := <-filled:
		if !ok {
			t.Error("nobody has told it to end")
		}
	case <-time.After(20 * time.Second):
		t.Error("it is waited for for ever")
	}
}
