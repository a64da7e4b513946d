package rollout_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// Stories that a review found: each failed once.

// checkTook checks how many of some workloads carry what is true.
func (w *world) checkTook(want int, of func(*app) bool) {
	w.t.Helper()
	took := 0
	for _, a := range w.apps {
		if of(a) && len(w.untrue(a)) == 0 {
			took++
		}
	}
	if took != want {
		w.errorf("%d of them carry what is true, want %d", took, want)
	}
}

func lacking(a *app) bool { return a.lacks > 0 }

func TestStory_WhatIsDownHaltsUntilTheContentIsProven(t *testing.T) {
	for _, paused := range []bool{false, true} {
		w := fleet(t, 14)
		w.tell("Seven Deployments are down, and go first, and seven are missing one pod of three. A bad edit reaches one of the former, whose failure halts the change as long as nothing has proven the content.", false)
		for n, ref := range w.order {
			a := w.apps[ref]
			place := n / 7
			if a.replicas, a.order = 3, &place; n < 7 {
				a.broken, a.fate = true, crashes
			} else {
				a.lacks, a.paused, a.held = 1, paused, paused
			}
		}
		w.lead()
		w.pass(20 * time.Minute)
		w.edit(web, w.content(crashes))
		w.pass(time.Hour)
		for _, ref := range w.order {
			a := w.apps[ref]
			a.paused = false
			w.see(a)
		}
		w.pass(24 * time.Hour)
		w.checkRolled(1)
		w.checkTook(0, lacking)
	}
}

func TestStory_DownIsAMinuteAndNoMoment(t *testing.T) {
	w := short(t, 12, 0)
	w.tell("Twelve Deployments that lack a pod have none for twenty seconds, around a bad edit.", false)
	w.pass(30 * time.Minute)
	for _, ref := range w.order {
		w.lose(w.apps[ref], 3)
	}
	w.edit(web, w.content(crashes))
	w.pass(20 * time.Second)
	for _, ref := range w.order {
		w.lose(w.apps[ref], 1)
	}
	w.pass(24 * time.Hour)
	w.checkRolled(1)
}

func TestStory_OneProofCountsOnce(t *testing.T) {
	w := fleet(t, 12)
	w.tell("All but the first of twelve Deployments cannot stand an edit. A new leader looks at the first again and again, as it cannot list pods: two more begin.", false)
	for _, ref := range w.order {
		w.apps[ref].allergic = ref.Name != "web-app"
	}
	w.edit(web, w.content(fine))
	w.pass(settle + time.Second)
	w.unread = w.now.Add(55 * time.Second)
	w.lead()
	w.pass(24 * time.Hour)
	w.checkRolled(3)
}

func TestStory_APodIsMadeAnewInALongSoak(t *testing.T) {
	for _, happens := range []func(*world, *app){
		func(w *world, a *app) { w.evict(a, 15*time.Second) },
		func(w *world, a *app) { w.crashOnce(a) },
	} {
		w := fleet(t, 4)
		w.tell("The first of four Deployments says soak: 1h. After thirty minutes a pod of it is evicted, or restarts once.", false)
		w.deployment("shop", "web-app").soak = checksum.Soak{For: time.Hour, Given: true}
		w.edit(web, w.content(fine))
		w.pass(30 * time.Minute)
		happens(w, w.deployment("shop", "web-app"))
		w.pass(10 * time.Hour)
		w.checkHalts(0)
		w.checkRolled(4)
	}
}

func TestStory_NodesAreReplacedInTheLongFirstSoak(t *testing.T) {
	w := fleet(t, 120)
	w.tell("A node is replaced each minute while the first of 120 Deployments is watched for five.", true)
	for _, a := range w.apps {
		a.replicas = 6
	}
	w.lead()
	w.pass(time.Minute)
	w.edit(web, w.content(fine))
	w.pass(20 * time.Second)
	for node := range 20 {
		w.at(time.Duration(node)*time.Minute, func() {
			for n, ref := range w.refs() {
				if (n+node)%3 == 0 {
					w.evict(w.apps[ref], 20*time.Second)
				}
			}
		})
	}
	w.pass(40 * time.Hour)
	w.checkHalts(0)
	w.checkRolled(120)
}

// statefulSets are eight, whose status tells no times.
func statefulSets(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	w.limits.FirstSoak = firstSoak
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		w.add(newApp(statefulSetKind, "shop", name, "web"))
	}
	w.lead()
	w.pass(10 * time.Minute)
	return w
}

// Also long after the failure a new leader finds it, whatever it may see.
func TestStory_StatefulSetsAndANewLeader(t *testing.T) {
	for _, after := range []time.Duration{5 * time.Minute, 12 * time.Minute, 15 * time.Minute} {
		for what, then := range map[string]func(*world){
			"sees all":                  func(*world) {},
			"cannot list pods at first": func(w *world) { w.unread = w.now.Add(55 * time.Second) },
			"has no right to list pods": func(w *world) { w.forbidden = "shop" },
		} {
			w := statefulSets(t)
			w.tell("A bad edit of eight StatefulSets. A new leader comes after "+after.String()+", and "+what+".", false)
			w.edit(web, w.content(crashes))
			w.pass(after)
			then(w)
			w.lead()
			w.pass(24 * time.Hour)
			w.checkRolled(1)
		}
	}
}

func TestStory_StatefulSetsWhoseOldPodsEndSlowly(t *testing.T) {
	w := statefulSets(t)
	w.tell("A new leader comes twelve minutes after a bad edit, while the old pods of the first end.", false)
	w.each(func(a *app) { a.recreate, a.ends = true, 20*time.Minute })
	w.edit(web, w.content(crashes))
	w.pass(12 * time.Minute)
	w.lead()
	w.pass(24 * time.Hour)
	w.checkRolled(1)
}

func TestStory_ANodeDiesUnderStatefulSets(t *testing.T) {
	w := statefulSets(t)
	w.tell("A node dies in the middle of a good edit. Its pods end for ever, and none are made in their place.", false)
	w.edit(web, w.content(fine))
	w.pass(settle + 14*time.Second)
	w.each(func(a *app) {
		a.nodeDied, a.disturbed = true, w.now.Add(2*time.Hour)
		w.follow(a)
	})
	w.pass(24 * time.Hour)
	w.checkHalts(0)
	w.checkRolled(8)
}

func TestStory_ScaledToNothingAfterAStumble(t *testing.T) {
	for after := 12 * time.Second; after < 24*time.Second; after += 500 * time.Millisecond {
		w := fleet(t, 4)
		w.tell("The first of four Deployments crashes for twelve seconds at its start, and is scaled to nothing "+after.String()+" after it has begun.", false)
		w.each(func(a *app) { a.stumbles, a.pace = 12*time.Second, 6*time.Second })
		w.edit(web, w.content(fine))
		w.pass(settle + after)
		w.mute(w.deployment("shop", "web-app"))
		w.pass(time.Hour)
		w.checkHalts(0)
	}
}

func TestStory_PodsOfWhatWasGivenUpAreSeldomListed(t *testing.T) {
	w := fleet(t, 4)
	w.tell("The controller of the first gives up after a minute, as one pod waits for a node and another is being created for ever.", false)
	a := w.deployment("shop", "web-app")
	a.replicas, a.deadline = 4, time.Minute
	w.lead()
	w.pass(time.Minute)
	w.edit(web, w.content(fine))
	w.pass(settle)
	a.creating = true
	w.lose(a, 1)
	w.pass(90 * time.Second)
	before := w.driver.lists
	w.pass(5 * time.Minute)
	if lists := w.driver.lists - before; lists > 10 {
		w.errorf("pods were listed %d times in five minutes, want 10 at most", lists)
	}
}

func TestStory_WhatLacksAPodIsScaledAllTheTime(t *testing.T) {
	w := short(t, 12, 0)
	w.tell("Twelve Deployments lack a pod, and an autoscaler scales them each twenty seconds for two hours.", false)
	w.edit(web, w.content(fine))
	for step := range 360 {
		w.at(time.Duration(step)*20*time.Second, func() {
			for n, ref := range w.refs() {
				w.scale(w.apps[ref], 4+(n+step)%5)
			}
		})
	}
	w.pass(115 * time.Minute)
	w.checkHalts(0)
	w.checkRolled(12)
}

// each does something with each workload.
func (w *world) each(do func(*app)) {
	for _, ref := range w.refs() {
		do(w.apps[ref])
	}
}

func TestStory_WithoutASoakAStandstillFails(t *testing.T) {
	w := fleet(t, 4)
	w.limits.Soak, w.limits.FirstSoak = 0, 0
	w.lead()
	w.pass(time.Minute)
	w.tell("With --soak=0s the new pods of the first wait for ever: it fails after the deadline, and halts.", false)
	w.edit(web, w.content(waits))
	w.deployment("shop", "web-app").deadline = 0 // of its own
	w.pass(time.Hour)
	w.checkRolled(1)
	w.checkHalts(1)
}
