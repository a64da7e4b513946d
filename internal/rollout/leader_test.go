package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
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
	for up := false; !up; up, _ = api.upNow(w.now) {
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

// A StatefulSet waits for a pod that is broken by the content before. A new leader, long after the
// edit, still takes it for the one that tries the content: it has not shown how that does.
func TestLeader_AStatefulSetThatWaitsForItsBrokenPodIsOnTrial(t *testing.T) {
	w := newWorld(t, 1)
	db := w.add(newApp(statefulSetKind, "shop", "db", "web"))
	db.ordered, db.freed = true, 1000*time.Hour
	others := []*app{w.add(deployment("shop", "api", "web")), w.add(deployment("shop", "cart", "web"))}
	pause := func(is bool) {
		for _, a := range others {
			a.paused, a.held = is, is
			w.see(a)
		}
	}
	w.lead()
	pause(true)
	w.pass(2 * time.Minute)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.edit(web, w.content(crashes))
	w.pass(time.Hour)
	pause(false)
	w.pass(time.Minute)
	w.checkRolled(1)
	w.lead()
	w.pass(time.Hour)
	w.checkRolled(1)
}

// A workload crashes again and again. A new leader finds it rolled out, as its status has it for a
// moment, and cannot list its pods for almost a minute: that proves nothing.
func TestLeader_WhatCannotBeReadIsNotHealthy(t *testing.T) {
	w := fleet(t, 4)
	w.limits.FirstSoak = 0
	w.edit(web, w.content(flaps))
	w.pass(10 * time.Minute)
	crashing := w.apps[w.order[slices.IndexFunc(w.order, func(ref workload.Ref) bool { return len(w.untrue(w.apps[ref])) == 0 })]]
	for up := false; !up; up, _ = crashing.upNow(w.now) {
		w.pass(100 * time.Millisecond)
	}
	w.unread = w.now.Add(55 * time.Second)
	w.lead()
	w.pass(time.Hour)
	w.checkRolled(1)
}

// A workload has failed for a reason of its own, and somebody has resumed the change. A new leader
// that cannot list pods for almost a minute finds that failure, and takes it for none of after that.
func TestLeader_WhatWasResumedStaysResumed(t *testing.T) {
	w := fleet(t, 12)
	allergic := w.apps[w.order[slices.IndexFunc(w.order, func(ref workload.Ref) bool { return ref.Name == "web-app" })]]
	allergic.allergic = true
	w.edit(web, w.content(fine))
	w.pass(5 * time.Minute)
	w.checkHalts(1)
	w.resume(web)
	w.pass(20 * time.Second)
	w.unread = w.now.Add(55 * time.Second)
	w.lead()
	w.pass(time.Hour)
	w.checkRolled(12)
	w.checkHalts(1)
}

// The last of a change fails, which halts nobody, and recovers. The edit after it is put back: what
// has failed with that content, and was well since with what the source held, halts nothing.
func TestWhatWasWellSinceHaltsNoContentThatIsPutBack(t *testing.T) {
	w := fleet(t, 4)
	last := 10
	slow := w.apps[w.order[0]]
	slow.order, slow.hangs = &last, true
	for _, ref := range w.order[1:] {
		place := 1
		w.apps[ref].order = &place
	}
	good := w.content(fine)
	w.edit(web, good)
	w.pass(time.Hour)
	slow.hangs, slow.until = false, w.now
	w.follow(slow)
	w.pass(time.Hour)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(4)
	w.edit(web, good)
	w.pass(time.Hour)
	w.checkRolled(4)
}

// All pods of a workload end before new ones come, and its turn came long after the edit. A new
// leader finds no older pod to tell by, and counts it all the same: none begins beside it.
func TestLeader_WhatEndsAllPodsFirstKeepsItsSlot(t *testing.T) {
	for name, ends := range map[string]time.Duration{"its old pods end": time.Hour, "its new pods start": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.limits.Unsettled, w.limits.UnsettledPerNamespace = rollout.Number(1), 1
			slow := w.add(deployment("shop", "slow", "one"))
			slow.recreate, slow.ends, slow.hangs = true, ends, true
			w.add(deployment("shop", "other", "two"))
			w.lead()
			slow.paused, slow.held = true, true
			w.see(slow)
			w.pass(2 * time.Minute)
			w.edit(place("shop", "one"), w.content(fine))
			w.pass(2 * w.limits.RolloutDeadline)
			slow.paused, slow.held = false, false
			w.see(slow)
			w.pass(time.Minute)
			w.edit(place("shop", "two"), w.content(fine))
			w.lead()
			w.pass(w.limits.RolloutDeadline / 2)
			w.checkRolled(1)
			w.pass(24 * time.Hour)
			w.checkRolled(2)
		})
	}
}

// A tenant rolls its own workloads, more than there are slots, and none becomes healthy. What it
// takes beyond the slots of its namespace is nobody else's.
func TestARolloutBeyondTheSlotsOfItsNamespaceTakesNoOther(t *testing.T) {
	w := newWorld(t, 1)
	other := w.add(deployment("shop", "web-app", "web"))
	var crowd []*app
	for i := range 12 {
		one := w.add(deployment("crowd", fmt.Sprint("crowd-", i), "hot"))
		one.hangs = true
		crowd = append(crowd, one)
	}
	w.lead()
	w.pass(2 * time.Minute)
	w.edit(place("crowd", "hot"), w.content(fine))
	w.pass(30 * time.Second)
	for _, one := range crowd {
		if len(w.untrue(one)) > 0 {
			w.roll(one, nil, false)
			w.see(one)
		}
	}
	w.pass(10 * time.Second)
	w.edit(web, w.content(fine))
	w.pass(time.Minute)
	if len(w.untrue(other)) > 0 {
		w.errorf("it waits for a slot of another namespace")
	}
}

// Nothing but one workload uses a ConfigMap, and it has failed with an edit. A new leader knows that too, and reports it.
func TestLeader_TheLastWorkloadOfAChange(t *testing.T) {
	w := newWorld(t, 1)
	api := w.add(deployment("shop", "api", "web"))
	w.lead()
	w.pass(time.Minute)
	w.edit(web, w.content(crashes))
	w.pass(10 * time.Minute)
	for range 3 {
		w.lead()
		w.pass(10 * time.Minute)
		if progress, known := w.driver.planner.ProgressOf(api.ref, web.Source); !known || progress.State != rollout.Failed {
			w.errorf("it is %v, known: %v", progress.State, known)
		}
		if _, halted := w.driver.planner.HaltOf(web); !halted {
			w.errorf("its change is not halted")
		}
	}
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkCarried(1)
	if _, halted := w.driver.planner.HaltOf(web); halted {
		w.errorf("its change is halted after the fix")
	}
}

// A workload that is not well has taken content two days ago, or by a release: a new leader does not say that it failed with that.
func TestLeader_WhatIsUnwellForAnotherReason(t *testing.T) {
	for _, longAgo := range []bool{false, true} {
		w := newWorld(t, 1)
		api := w.add(deployment("shop", "api", "web"))
		w.lead()
		w.pass(time.Minute)
		w.edit(web, w.content(fine))
		w.pass(time.Minute)
		if longAgo {
			w.pass(48 * time.Hour)
		} else {
			api.stamp(func(at rollout.SourceRef) *content { return w.contents[at] })
		}
		api.broken = true
		api.begin(w.now, w.fateOf(api), time.Time{})
		w.see(api)
		w.pass(time.Minute)
		w.lead()
		w.pass(10 * time.Minute)
		if progress, known := w.driver.planner.ProgressOf(api.ref, web.Source); !known || progress.State == rollout.Failed {
			w.errorf("it is %v, known: %v", progress.State, known)
		}
	}
}

// Content that comes again after days may have its ReplicaSet from the first time. A new leader finds all the same that the
// last workload of the change has failed with it.
func TestLeader_FailureWithAnOldRevision(t *testing.T) {
	w := newWorld(t, 1)
	api := w.add(deployment("shop", "api", "web"))
	w.lead()
	w.pass(time.Minute)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	api.revisions[len(api.revisions)-1].made = w.now.Add(-48 * time.Hour)
	w.lead()
	w.pass(5 * time.Minute)
	if is, known := w.driver.planner.ProgressOf(api.ref, web.Source); !known || is.State != rollout.Failed {
		w.errorf("the new leader knows %t that it is in state %d, want that it has failed", known, is.State)
	}
}
