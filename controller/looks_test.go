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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/internal/follow"
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
