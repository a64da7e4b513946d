package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// started runs a controller with a real clock until the test ends.
func started(t *testing.T, h *house) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// realTime gives a house the real clock, and sources that settle at once.
func realTime(t *testing.T, c *cluster) *house {
	t.Helper()
	h := newHouse(t, c)
	h.control(t, 0, clock.RealClock{})
	return h
}

func (c *cluster) stampedTrue(ref workload.Ref) bool {
	c.mu.Lock()
	body := c.body(ref)
	c.mu.Unlock()
	object, err := c.kind.Decode(body)
	if err != nil {
		return false
	}
	held, _ := object.Records()
	references, _ := object.References()
	policy := checksum.DefaultPolicy()
	review := c.ring.Review(ref.Namespace, &policy, checksum.Selections(references, policy), held, func(s checksum.Source) *checksum.Content { return c.Content("", s) })
	return len(review.Untrue) == 0 && len(review.ToRecord) == 0
}

func TestRun_OneBrokenWorkloadDoesNotStopTheOthers(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	var refs []workload.Ref
	for i := range 50 {
		refs = append(refs, c.deploy(fmt.Sprintf("d%02d", i), "c"))
	}
	h := realTime(t, c)
	c.fail["d00"] = 3 // refused again and again, and then not any more
	started(t, h)
	eventually(t, "all but one are on record", func() bool {
		return !slices.ContainsFunc(refs[1:], func(u workload.Ref) bool { return !c.stampedTrue(u) })
	})
	if c.stampedTrue(refs[0]) {
		t.Fatal("the broken one is on record already: the test shows nothing")
	}
	eventually(t, "the broken one is on record too", func() bool { return c.stampedTrue(refs[0]) })
}

func TestRecord_DoesNotWaitForSettling(t *testing.T) {
	c := newCluster(t)
	d := c.deploy("d", "c")
	h := newHouse(t, c)
	h.control(t, time.Hour, clock.RealClock{})
	started(t, h)
	c.write("c", map[string]string{"k": "first"})
	h.Changed("shop", configMap("c"))
	eventually(t, "the first content is on record", func() bool { return c.stampedTrue(d) })
}

func TestRun_WhatNobodyUsesCostsNothing(t *testing.T) {
	c := newCluster(t)
	c.write("c", nil)
	c.deploy("d", "c")
	h := adopted(t, c)
	for h.queue.Len() > 0 {
		h.next(t.Context())
	}
	h.Changed("shop", configMap("unused"))
	h.Changed("elsewhere", configMap("c"))
	h.rest()
	if h.queue.Len() != 0 {
		t.Errorf("%d queued, want none", h.queue.Len())
	}
}

func TestRun_AProcessThatDoesNotLeadKeepsNothingOfWhatIsGone(t *testing.T) {
	c := newCluster(t)
	c.write("c", nil)
	h := realTime(t, c)
	for i := range 100 {
		d := c.deploy(fmt.Sprint("preview-", i), "c")
		h.see(t, d)
		h.Changed("shop", configMap("c"))
		h.NamespaceChanged("shop")
		h.Reconsider()
		h.index.Told(d, nil)
	}
	if n := h.queue.Len(); n > 0 {
		t.Errorf("%d are queued", n)
	}
}

// What comes at the moment of becoming the leader is looked at.
func TestRun_NothingIsLostAtTheMomentOfLeading(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "v"})
	h := realTime(t, c)
	var refs []workload.Ref
	var coming []any
	for i := range 90 { // as many events find room
		d := c.deploy(fmt.Sprintf("d%03d", i), "c")
		refs, coming = append(refs, d), append(coming, h.arrived(t, c.kind, c.body(d)))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		sink := h.fills(c.kind, "")
		for _, object := range coming {
			_ = sink.Add(object)
		}
	}()
	started(t, h)
	<-done
	eventually(t, "all are on record", func() bool {
		return !slices.ContainsFunc(refs, func(u workload.Ref) bool { return !c.stampedTrue(u) })
	})
}
