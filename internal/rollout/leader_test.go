package rollout_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
)

// A Knative Service crashes after three seconds, again and again. Its pods cannot be selected,
// and a new leader looks at it in a moment in which it is Ready: that moment proves nothing.
func TestLeader_ReadyForAMomentIsNotHealthy(t *testing.T) {
	w := newWorld(t, 1)
	first := 0
	api := w.add(knative("shop", "api", "web"))
	api.order = &first
	w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(2 * time.Minute)
	w.edit(web, w.content(flaps))
	w.pass(time.Minute)
	for up := false; !up; up, _ = api.up(w.now) {
		w.pass(time.Second)
	}
	w.lead()
	w.pass(time.Hour)
	w.checkRolled(1)
}

// A workload lacks a pod for reasons of its own. A new leader takes that for the rollout of a
// change that is not over, as it cannot know better. It has more rollouts then than there are
// slots, and none begins, not in that workload either.
func TestLeader_WhatItTakesForARolloutOpensNoSlot(t *testing.T) {
	w := newWorld(t, 1)
	w.limits.Unsettled, w.limits.UnsettledPerNamespace = rollout.Number(1), 1
	first := 0
	lacking := w.add(deployment("shop", "lacking", "one", "two"))
	lacking.order = &first
	w.add(deployment("shop", "other", "one")).hangs = true
	w.lead()
	w.pass(2 * time.Minute)
	w.edit(place("shop", "one"), w.content(fine))
	w.pass(30 * time.Second) // the other one is under way, and has a slot for ten minutes
	w.generates(lacking, 0)
	w.pass(2 * time.Minute)
	w.edit(place("shop", "two"), w.content(fine))
	w.pass(10 * time.Second)
	w.lead()
	w.pass(time.Minute)
	w.checkRolled(1)
	w.pass(time.Hour)
	w.checkRolled(2)
}

// More workloads roll than there are slots, as somebody rolled one that waited. A fix of what we
// have begun goes at once all the same: a workload that is broken is not kept broken by a count.
func TestAFixOfWhatWeHaveBegunGoesAtOnce(t *testing.T) {
	w := newWorld(t, 1)
	w.limits.Unsettled, w.limits.UnsettledPerNamespace = rollout.Number(1), 1
	first := 0
	begun := w.add(deployment("shop", "begun", "one"))
	begun.order, begun.hangs = &first, true
	waiting := w.add(deployment("shop", "waiting", "one"))
	waiting.hangs = true
	w.lead()
	w.pass(2 * time.Minute)
	w.edit(place("shop", "one"), w.content(fine))
	w.pass(30 * time.Second)
	w.roll(waiting, nil, false)
	w.see(waiting)
	w.pass(10 * time.Second)
	w.edit(place("shop", "one"), w.content(fine))
	w.pass(20 * time.Second)
	if len(w.untrue(begun)) > 0 {
		w.errorf("the fix waits for a slot that its workload has")
	}
}
