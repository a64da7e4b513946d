package controller

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// logged has what the controller logs written to a buffer.
func logged(t *testing.T) *bytes.Buffer {
	t.Helper()
	var log bytes.Buffer
	klog.SetLoggerWithOptions(logr.FromSlogHandler(slog.NewJSONHandler(&log, nil)), klog.ContextualLogger(true))
	t.Cleanup(klog.ClearLogger)
	return &log
}

// A workload at which we panic is tried again and told of; the others roll, each
// once, and the leader stays.
func TestPanic_OfOneWorkloadIsItsOwn(t *testing.T) {
	log := logged(t)
	other := configMap("other")
	w, at := fleet(t, 5, func(i int, app *simulatedApp) {
		if i == 0 {
			app.sources = append(app.sources, other)
		}
	})
	w.poison = rollout.SourceRef{Namespace: "shop", Source: other}
	w.edit(at, w.newContent())
	w.pass(10 * time.Minute)
	w.wantRolls(0, 1, 1, 1, 1)
	w.wantHeard("ReadmissionFailing", 1, "an internal error of configstamp (a panic)")
	if waiting := w.controller.waits.Tally()[reason.Retry.Label()]; waiting.Count != 1 || w.clock.Since(waiting.Since) < 9*time.Minute {
		t.Errorf("it is not known to be tried again since it panicked: %+v", waiting)
	}
	if got := testutil.ToFloat64(w.controller.metrics.panics.WithLabelValues(inLook)); got < 5 || got > 30 {
		t.Errorf("%v panics are counted in ten minutes, want some 18", got)
	}
	for _, want := range []string{`"msg":"A look at a workload panicked","workload":"deployments.apps shop/app-00"`, "Content:"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s", want)
		}
	}
	if strings.Contains(log.String(), "S3CR3T") {
		t.Error("the log says what panicked")
	}
	w.poison = rollout.SourceRef{}
	w.pass(2 * time.Minute)
	w.wantRolls(1, 1, 1, 1, 1)
	w.wantAllTrue()
}

// One at which we panic when its turn has come gives it back, though it would be the
// first, and the only one at once.
func TestPanic_TakesNobodysTurn(t *testing.T) {
	logged(t)
	extra := configMap("extra")
	w := newWorld(t)
	w.limits.Unsettled, w.limits.UnsettledPerNamespace = rollout.Number(1), 1
	at := w.fill(3, func(i int, app *simulatedApp) {
		if i == 0 {
			app.sources = append(app.sources, extra)
		}
	})
	w.at(settle-time.Millisecond, func() { w.poison = rollout.SourceRef{Namespace: "shop", Source: extra} })
	w.edit(at, w.newContent())
	w.pass(10 * time.Minute)
	w.wantRolls(0, 1, 1)
}

// One at which we panic once it rolls holds no slot for ever: its change is halted,
// as nobody knows whether it is healthy, and other changes go on.
func TestPanic_HoldsNoSlotForEver(t *testing.T) {
	logged(t)
	other, extra := configMap("other"), configMap("extra")
	w := newWorld(t)
	w.limits.Unsettled, w.limits.UnsettledPerNamespace = rollout.Number(1), 1
	at := w.fill(3, func(i int, app *simulatedApp) {
		switch i {
		case 0:
			app.sources = append(app.sources, extra)
		case 2:
			app.sources[0] = other
		}
	})
	w.before = func() { w.poison, w.before = rollout.SourceRef{Namespace: "shop", Source: extra}, nil }
	w.edit(at, w.newContent())
	w.pass(20 * time.Second)
	w.edit(rollout.SourceRef{Namespace: "shop", Source: other}, w.newContent())
	w.pass(time.Hour)
	w.wantRolls(1, 0, 1)
	w.wantHeard("ChangeHalted", 1, "configstamp fails to look at it")
}

// When the planner panics, nobody's turn is lost, and it is asked again.
func TestPanic_OfThePlannerIsNotTheEndOfTurns(t *testing.T) {
	logged(t)
	w, at := fleet(t, 5)
	w.spoil(at)
	w.pass(5 * time.Second)
	w.panics = 3
	w.pass(5 * time.Minute)
	w.wantRolls(1, 0, 0, 0, 0)
	w.wantHeard("ChangeHalted", 1)
	if got := testutil.ToFloat64(w.controller.metrics.panics.WithLabelValues(inTurns)); got != 3 {
		t.Errorf("%v panics are counted, want 3", got)
	}
	w.edit(at, w.newContent())
	w.pass(5 * time.Minute)
	w.wantRolls(2, 1, 1, 1, 1)
	w.wantAllTrue()
}

// A workload at which reading panics is kept with that fault, and the watch goes on.
func TestPanic_WhileReadingIsThatWorkloadsFault(t *testing.T) {
	logged(t)
	c := newCluster(t)
	c.write("c", nil)
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	c.objects[d]["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "example.com/v1", "kind": "Owner", "name": "o", "uid": "u", "controller": true}}
	c.objects[d]["metadata"].(map[string]any)["resourceVersion"] = "5"
	h.options.Kinds = workload.Table{nil} // at an owner's kind we panic
	h.see(t, d)
	h.mustSync(t, d)
	if _, said := h.happened(); len(said) != 1 || !strings.Contains(said[0], "TemplateUnreadable") || !strings.Contains(said[0], "internal error of configstamp") {
		t.Errorf("events: %q", said)
	}
	if got := testutil.ToFloat64(h.metrics.panics.WithLabelValues(inWatch)); got != 1 {
		t.Errorf("%v panics are counted, want 1", got)
	}
}

// A workload that cannot be decoded is kept with that fault, and with what its metadata says.
func TestWatch_WhatCannotBeDecodedIsAFault(t *testing.T) {
	c := newCluster(t)
	kind := workload.Builtin()[0]
	h := newHouse(t, c)
	head := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d", UID: "u", ResourceVersion: "7", Generation: 3, Annotations: map[string]string{"configstamp.dev/pause": "true", "x": "hunter2"}}}
	read, ok := h.reads(kind)(head)
	if !ok || read.Ref != (workload.Ref{Kind: kind, Namespace: "shop", Name: "d"}) {
		t.Fatalf("%+v, %t", read, ok)
	}
	if s := read.Workload; s.Fault == "" || strings.Contains(s.Fault, "hunter2") || s.UID != "u" || s.ResourceVersion != "7" || s.Generation != 3 || s.Settings["configstamp.dev/pause"] != "true" {
		t.Errorf("%+v", s)
	}
	if read, ok := h.reads(kind)(&metav1.Status{}); ok {
		t.Errorf("a Status is read as %+v", read)
	}
}

// Health is that the queue moves; a worker that hangs, or has ended, is a reason to
// start anew, and an API server that is away is none.
func TestRun_HealthIsThatTheQueueMoves(t *testing.T) {
	c := newCluster(t)
	c.write("c", nil)
	d := c.deploy("d", "c")
	healthy := func(h *house, want string) {
		t.Helper()
		switch err := h.Healthy(h.clock.Now()); {
		case want == "" && err != nil:
			t.Errorf("unhealthy: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("health is %v, want %q", err, want)
		}
	}
	t.Run("a worker that hangs", func(t *testing.T) {
		h := newHouse(t, c)
		h.queue.Add(d)
		done := h.looks.Begin(h.clock.Now())
		h.clock.Step(longestLook)
		healthy(h, "")
		h.clock.Step(stuckAfter)
		healthy(h, "under way for 25m0s")
		done()
		h.next(t.Context())
		healthy(h, "")
	})
	t.Run("a queue that nobody takes from", func(t *testing.T) {
		h := newHouse(t, c)
		h.queue.Add(d)
		h.clock.Step(stuckAfter + time.Second)
		healthy(h, "nothing has been taken from the queue")
		h.leads.Store(false)
		healthy(h, "") // it is for the leader
	})
	t.Run("a worker that has ended", func(t *testing.T) {
		h := realTime(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.work(ctx)
		}()
		eventually(t, "it works", func() bool { return !h.looks.Latest().IsZero() })
		healthy(h, "")
		cancel()
		<-done
		healthy(h, "") // it was told to end
		h.ended.Add(1)
		healthy(h, "1 of 3 workers have ended")
	})
	t.Run("an API server that is away", func(t *testing.T) {
		h := newHouse(t, c)
		c.refusal = errLost
		for range 1000 {
			h.queue.Add(d)
			h.next(t.Context())
			h.clock.Step(lastRetry)
			healthy(h, "")
		}
	})
}
