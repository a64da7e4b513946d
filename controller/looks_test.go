package controller

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/follow"
	"github.com/configstamp/configstamp/internal/workload"
)

// A rollout that says "rolling" and does not change costs next to nothing.
func TestPodsOfAnIdleRolloutAreSeldomListed(t *testing.T) {
	w, at := fleet(t, 3, func(_ int, app *simulatedApp) { app.hangs = true })
	w.edit(at, w.newContent())
	w.pass(time.Hour)
	w.wantRolls(1, 0, 0)
	if w.lists > 12 {
		t.Errorf("in its first hour its pods were listed %d times, want a handful", w.lists)
	}
	w.lists = 0
	w.pass(6 * time.Hour)
	if w.lists > 4 {
		t.Errorf("in six hours more its pods were listed %d times", w.lists)
	}
}

// Those of a good rollout are listed when it is done, and again after the soak.
func TestPodsOfAGoodRolloutAreListedTwice(t *testing.T) {
	w, at := fleet(t, 50)
	w.edit(at, w.newContent())
	w.pass(10 * time.Minute)
	w.wantRolls(repeated(50, 1)...)
	if w.lists > 2*50 {
		t.Errorf("pods were listed %d times for 50 rollouts, want twice for each", w.lists)
	}
}

// A change that is halted for days asks for nothing.
func TestPodsOfAFailedRolloutAreSeldomListed(t *testing.T) {
	w, at := fleet(t, 3)
	w.spoil(at)
	w.pass(time.Minute)
	w.wantHeard("ChangeHalted", 1)
	w.lists = 0
	w.pass(24 * time.Hour)
	if w.lists > 12 {
		t.Errorf("in a day its pods were listed %d times", w.lists)
	}
}

// All new pods crash while the status says "rolling" all the time: that is found
// soon, and so it is of one that a new leader finds.
func TestCrashesAreFoundSoonThoughTheStatusSaysNothing(t *testing.T) {
	for _, newLeader := range []bool{false, true} {
		w, at := fleet(t, 3)
		w.spoil(at)
		w.pass(settle + time.Second)
		if newLeader {
			w.pass(w.limits.CrashDeadline / 2)
			w.lead()
		}
		w.pass(w.limits.CrashDeadline + 8*time.Second)
		w.wantHeard("RolloutFailed", 1, "CrashLoopBackOff")
	}
}

// A DaemonSet of 500 pods replaces one in twenty seconds, each of which is well.
func TestPodsOfASlowRolloutAreSeldomListed(t *testing.T) {
	p := newPatient(t)
	for second := range 10_000 {
		updated := int32(second / 20)
		p.pods = []workload.Pod{{Name: "first", Node: "a", Stamps: p.stamps, Ready: second >= 20, Created: p.began}}
		p.status = workload.Rollout{Phase: workload.Rolling, PerNode: true, Updated: updated, Available: 499, Missing: 500 - updated}
		if how, why := p.examine(second); how != underWay {
			t.Fatalf("judged %v (%s) after %d seconds", how, why, second)
		}
	}
	if p.hospital.lists > 12 {
		t.Errorf("its pods were listed %d times", p.hospital.lists)
	}
}

// A DaemonSet with a node that is not ready has failed, and is as well again as it was
// at best: that it has never been better does not hide it.
func TestAFailedDaemonSetThatRecoversIsFoundSoon(t *testing.T) {
	p := newPatient(t)
	p.hospital.down = map[string]bool{"b": true}
	up := workload.Pod{Name: "new", Node: "a", Stamps: p.stamps, Ready: true, Created: p.began, Started: p.began}
	lost := workload.Pod{Name: "new-too", Node: "b", Stamps: p.stamps, Created: p.began}
	crashing := workload.Pod{Name: "new", Node: "a", Stamps: p.stamps, Created: p.began, Restarted: true, Trouble: "container app: CrashLoopBackOff"}
	for second := range 3600 {
		p.pods = []workload.Pod{up, lost}
		p.status = workload.Rollout{Phase: workload.Rolling, PerNode: true, Updated: 2, Available: 1, Missing: 1}
		if second >= 4 && second < 1800 {
			p.pods = []workload.Pod{crashing, lost}
			p.status.Available, p.status.Missing = 0, 2
		}
		how, _ := p.examine(second)
		p.rollout.failed = p.rollout.failed || how == failed
		if how == healthy {
			if !p.rollout.failed || second < 1800 || second > 1800+60 {
				t.Errorf("healthy after %d seconds (it failed: %t), want it within a minute from 1800", second, p.rollout.failed)
			}
			return
		}
	}
	t.Error("never healthy")
}

// patient is a rollout that is looked at by hand.
type patient struct {
	*Controller
	t        *testing.T
	hospital *hospital
	clock    *clocktesting.FakeClock
	began    time.Time
	stamps   map[string]string
	rollout  *rollout
	status   workload.Rollout
	pods     []workload.Pod
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	began := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	p := &patient{t: t, hospital: &hospital{}, clock: clocktesting.NewFakeClock(began), began: began, stamps: map[string]string{"configmap.configstamp.dev/c": "new"}}
	p.rollout = &rollout{began: began, health: health{asked: true, selector: "app=a"}}
	p.Controller = newController(Options{Limits: newWorld(t).limits, Clock: p.clock}, nil, nil, nil, p.hospital, nil, prometheus.NewRegistry())
	return p
}

// examine tells how it is after some seconds.
func (p *patient) examine(second int) (condition, string) {
	p.t.Helper()
	p.clock.SetTime(p.began.Add(time.Duration(second) * time.Second))
	p.hospital.all = p.pods
	how, why, err := p.Controller.examine(p.t.Context(), ref{}, &subject{rollout: p.status, records: checksum.Records{Stamps: p.stamps}}, p.rollout)
	if err != nil {
		p.t.Fatal(err)
	}
	return how, why
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
func TestEachPageOfPodsHasADeadlineOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = 50
		core, err := follow.NewRaw(&rest.Config{Host: "http://api", QPS: -1, Transport: &slowPages{pages}}, corev1.SchemeGroupVersion, unwatched)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := (&restAPI{core: core}).pods(context.Background(), "shop", "app=agent")
		if err != nil || len(pods) != pages*podsAtOnce {
			t.Errorf("%d pods, want %d: %v", len(pods), pages*podsAtOnce, err)
		}
	})
}
