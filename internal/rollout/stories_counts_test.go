package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// Stories of workloads that are not as they should be when an edit comes: they count, as long
// as they have anything to lose. Each has a twin with a good edit, which nothing halts.

// twins plays a story with each of some bad contents, which reach one workload, and with a good
// one, which reaches all.
func twins(t *testing.T, story string, play func(t *testing.T, w *world, is *content), is func(t *testing.T) *world, bad ...fate) {
	t.Helper()
	for _, how := range append(bad, fine) {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			w := is(t)
			w.tell(story, false)
			play(t, w, w.content(how))
			if how == fine {
				w.checkRolled(len(w.apps))
				w.checkHalts(0)
				return
			}
			w.checkRolled(1)
			if w.nHalts == 0 { // each leader tells it once
				w.errorf("no change has halted")
			}
		})
	}
}

// editAndWait has web go to a content, and a day pass.
func editAndWait(_ *testing.T, w *world, is *content) {
	w.edit(web, is)
	w.pass(24 * time.Hour)
}

// short is a fleet of which all but some lack one pod of three: a zone is down, or a quota full.
func short(t *testing.T, workloads, whole int) *world {
	t.Helper()
	w := fleet(t, workloads)
	for n, ref := range w.order {
		a := w.apps[ref]
		if a.replicas = 3; n >= whole {
			a.lacks = 1
		}
	}
	w.lead()
	w.pass(10 * time.Minute)
	return w
}

func TestStory_EachLacksOnePod(t *testing.T) {
	twins(t, "Forty Deployments lack one pod of three.", editAndWait,
		func(t *testing.T) *world { return short(t, 40, 0) }, crashes, flaps, fades)
}

func TestStory_FourTakeItAnd36LackAPod(t *testing.T) {
	w := short(t, 40, 4)
	w.tell("Of forty Deployments 36 lack one pod of three, and cannot stand the edit; four can.", false)
	for _, ref := range w.order {
		a := w.apps[ref]
		a.allergic, a.order = a.lacks > 0, nil
	}
	w.edit(web, w.content(fine))
	w.pass(24 * time.Hour)
	w.checkRolled(5)
	w.checkHalts(1)
}

// All roll for another reason, and are halfway when the edit comes.
func TestStory_AReleaseOfAllIsRolling(t *testing.T) {
	for _, pace := range []time.Duration{20 * time.Second, 3 * time.Minute} {
		twins(t, fmt.Sprintf("Thirty Deployments roll for another reason, a pod each %s.", pace), func(t *testing.T, w *world, is *content) {
			t.Helper()
			for _, ref := range w.refs() {
				a := w.apps[ref]
				a.pace = pace
				w.roll(a, nil, false)
				w.see(a)
			}
			w.pass(pace / 2)
			editAndWait(t, w, is)
		}, func(t *testing.T) *world { return fleet(t, 30) }, crashes, flaps)
	}
}

// What has nothing to lose halts nothing: it may be broken for a reason of its own.
func TestStory_WhatIsDownHaltsNothing(t *testing.T) {
	w := fleet(t, 12)
	w.tell("Three of twelve Deployments are down, whatever they carry. A good edit reaches all.", false)
	for _, name := range []string{"app-003", "app-007", "app-010"} {
		a := w.deployment("shop", name)
		a.broken, a.fate = true, crashes
		w.see(a)
	}
	w.lead()
	w.pass(time.Hour)
	w.edit(web, w.content(fine))
	w.pass(24 * time.Hour)
	w.checkRolled(12)
	w.checkHalts(0)
	if w.rolledOut != 9 {
		t.Errorf("it is said to have rolled out to %d workloads, want 9", w.rolledOut)
	}
}

// What is ready for a moment each time it starts is down all the same.
func TestStory_WhatIsReadyForMomentsIsDown(t *testing.T) {
	for offset := range 13 {
		w := fleet(t, 4)
		w.tell(fmt.Sprintf("One of four Deployments is ready for three seconds, and crashes for ten. An edit comes %d s later.", offset), false)
		ill := w.deployment("shop", "app-002")
		ill.broken, ill.fate, ill.up, ill.began = true, flaps, 3*time.Second, w.now
		w.follow(ill)
		w.lead()
		w.pass(time.Hour + time.Duration(offset)*time.Second)
		w.edit(web, w.content(fine))
		w.pass(24 * time.Hour)
		w.checkRolled(4)
		w.checkHalts(0)
		if w.rolledOut != 3 {
			w.errorf("it is said to have rolled out to %d workloads, want 3", w.rolledOut)
		}
	}
}

// Leaders change while the old pods of the first end, so that no new one is there yet.
func TestStory_LeadersChangeWhileOldPodsEnd(t *testing.T) {
	twins(t, "Of twelve Deployments with strategy Recreate, the first has old pods that end slowly. A new leader comes each twenty seconds.", func(_ *testing.T, w *world, is *content) {
		w.edit(web, is)
		for range 6 {
			w.pass(20 * time.Second)
			w.lead()
		}
		w.pass(24 * time.Hour)
	}, func(t *testing.T) *world {
		w := fleet(t, 12)
		for _, a := range w.apps {
			a.recreate, a.ends = true, 100*time.Second
		}
		w.lead()
		w.pass(time.Minute)
		return w
	}, crashes, flaps, fades)
}

// A new leader cannot list pods for a while: what rolls, or was well for no soak yet, holds its
// room meanwhile.
func TestStory_ANewLeaderCannotListPods(t *testing.T) {
	for _, after := range []time.Duration{settle + time.Second, settle + 12*time.Second, settle + 40*time.Second} {
		for _, unread := range []time.Duration{55 * time.Second, 5 * time.Minute} {
			twins(t, fmt.Sprintf("A new leader comes %s after an edit of twelve Deployments, and cannot list pods for %s.", after, unread), func(_ *testing.T, w *world, is *content) {
				w.edit(web, is)
				w.pass(after)
				w.unread = w.now.Add(unread)
				w.lead()
				w.pass(24 * time.Hour)
			}, func(t *testing.T) *world { return fleet(t, 12) }, crashes, flaps, fades)
		}
	}
}

// A setting that watches for longer than --rollout-deadline keeps the room, not the slot.
func TestStory_WatchedForLongerThanTheDeadline(t *testing.T) {
	w := fleet(t, 4)
	w.tell("The first of four Deployments says soak: 1h. It holds no slot after eleven minutes, and nobody begins before the hour is over.", false)
	w.deployment("shop", "web-app").soak = checksum.Soak{For: time.Hour, Given: true}
	w.edit(web, w.content(fine))
	w.pass(30 * time.Minute)
	w.checkRolled(1)
	if n := w.driver.counts(); n.Unsettled != 0 {
		w.errorf("%d slots are taken, want none", n.Unsettled)
	}
	w.pass(2 * time.Hour)
	w.checkRolled(4)
}

// Who takes it to no replicas while its pods crash does not have the next one try.
func TestStory_ScaledToNothingWhileItCrashes(t *testing.T) {
	w := fleet(t, 4)
	w.tell("The first of four Deployments crashes, and is scaled to nothing before it has failed.", false)
	w.edit(web, w.content(crashes))
	w.pass(settle + 20*time.Second)
	w.mute(w.deployment("shop", "web-app"))
	w.pass(24 * time.Hour)
	w.checkRolled(1)
	w.checkHalts(1)
}
