package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Stories of a failure that belongs to its source: whoever is broken takes what comes next, and
// nobody else does before it is well.

// checkTouched checks how many workloads we have rolled.
func (w *world) checkTouched(want int) {
	w.t.Helper()
	touched := 0
	for _, a := range w.apps {
		if a.everByUs {
			touched++
		}
	}
	if touched != want {
		w.errorf("%d of %d workloads were rolled, want %d", touched, len(w.apps), want)
	}
}

// writes has a source written again and again.
func (w *world) writes(at rollout.SourceRef, times int, every time.Duration, how fate) {
	for n := range times {
		w.at(time.Duration(n)*every, func() { w.edit(at, w.content(how)) })
	}
	w.pass(time.Duration(times) * every)
}

func TestStory_ABotWritesBadContent(t *testing.T) {
	for _, how := range []fate{crashes, flaps, fades, waits} {
		for _, every := range []time.Duration{3 * time.Second, 20 * time.Second, 30 * time.Second, 5 * time.Minute} {
			w := fleet(t, 30)
			w.tell(fmt.Sprintf("A bot writes bad content (%v) each %s. It reaches one of thirty Deployments.", how, every), false)
			w.writes(web, 200, every, how)
			w.pass(3 * time.Hour)
			w.checkTouched(1)
			w.edit(web, w.content(fine))
			w.pass(3 * time.Hour)
			w.checkRolled(30)
		}
	}
}

// A bot that writes good content starves nobody.
func TestStory_ABotWritesGoodContent(t *testing.T) {
	w := fleet(t, 12)
	w.tell("A bot writes good content each forty seconds. All of twelve Deployments roll now and then.", true)
	w.writes(web, 900, 40*time.Second, fine)
	w.checkTouched(12)
	w.checkHalts(0)
}

func TestStory_FiveBadFixesAndAGoodOne(t *testing.T) {
	for _, every := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour} {
		w := fleet(t, 12)
		w.tell(fmt.Sprintf("People try five bad fixes, one each %s, and then a good one. The bad ones reach one of twelve Deployments.", every), false)
		w.writes(web, 6, every, crashes)
		w.checkTouched(1)
		w.edit(web, w.content(fine))
		fixed := w.now
		w.pass(2 * time.Hour)
		w.checkRolled(12)
		if took := w.deployment("shop", "web-app").began.Sub(fixed); took > time.Minute+settle {
			w.errorf("the fix came after %s, want a minute at most", took)
		}
	}
}

// Its pace keeps nobody broken.
func TestStory_TheFixAfterEightBadTries(t *testing.T) {
	w := fleet(t, 12)
	w.tell("Eight bad tries within four minutes. The fix comes within a minute.", false)
	w.writes(web, 8, 30*time.Second, crashes)
	w.edit(web, w.content(fine))
	fixed := w.now
	w.pass(2 * time.Hour)
	if took := w.deployment("shop", "web-app").began.Sub(fixed); took > time.Minute+settle {
		w.errorf("the fix came after %s, want a minute at most", took)
	}
	w.checkRolled(12)
}

// Who asks for a slower pace gets no faster one while it is broken.
func TestStory_AnIntervalIsNoHurry(t *testing.T) {
	w := fleet(t, 12)
	w.tell("The first has an interval of an hour. A bot writes bad content each six seconds, for an hour. It is tried once a minute.", false)
	app := w.deployment("shop", "web-app")
	app.interval = time.Hour
	w.pass(2 * time.Hour) // since it rolled
	w.edit(web, w.content(crashes))
	w.pass(2 * time.Minute)
	w.writes(web, 600, 6*time.Second, crashes)
	if app.rolls > 70 {
		w.errorf("it has rolled %d times within an hour", app.rolls)
	}
	w.checkTouched(1)
	w.edit(web, w.content(fine))
	w.pass(2 * time.Hour)
	w.checkRolled(12)
}

func TestStory_CIDeletesTheFailedOneAndMakesItAgain(t *testing.T) {
	for _, after := range []time.Duration{3 * time.Second, 5 * time.Minute} {
		w := fleet(t, 20)
		w.tell(fmt.Sprintf("CI deletes the failed one, and makes it again after %s, twenty times. No other of twenty Deployments rolls.", after), true)
		w.edit(web, w.content(crashes))
		w.pass(2 * time.Minute)
		for range 20 {
			a := w.deployment("shop", "web-app")
			w.remove(a)
			w.pass(after)
			w.remake(a)
			w.pass(2 * time.Minute)
		}
		w.checkTouched(1)
		w.edit(web, w.content(fine))
		w.pass(2 * time.Hour)
		w.checkRolled(20)
	}
}

func TestStory_TenLargeDaemonSets(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 10 {
		a := w.add(daemonSet(fmt.Sprintf("infra-%d", n), "agent", 1000, "config"))
		a.batch, a.pace = 1, 30*time.Second
	}
	app := w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("Ten DaemonSets of 1,000 nodes roll, which takes eight hours. Another tenant waits for a slot for ten minutes at most.", true)
	for n := range 10 {
		w.edit(place(fmt.Sprintf("infra-%d", n), "config"), w.content(fine))
	}
	w.pass(time.Minute)
	edited := w.now
	w.edit(web, w.content(fine))
	w.pass(20 * time.Hour)
	w.soon(app, edited, w.limits.RolloutDeadline)
	w.checkRolled(11)
}

// Harm that comes late, while others wait: how many of so many Deployments content reaches that
// crashes so many seconds after the start, as docs/rollouts.md has it.
func TestStory_LateHarm(t *testing.T) {
	fleets := []int{3, 9, 10, 50, 100, 1000}
	for up, want := range map[int][]int{
		5:   {1, 1, 1, 1, 1, 1},
		15:  {1, 1, 1, 1, 1, 1},
		65:  {3, 9, 3, 3, 1, 1},
		310: {3, 9, 10, 50, 3, 3},
	} {
		for i, workloads := range fleets {
			w := fleet(t, workloads)
			for _, a := range w.apps {
				a.order = nil
			}
			w.lead()
			w.pass(time.Minute)
			w.tell(fmt.Sprintf("Content crashes %d s after the start.", up), true)
			bad := w.content(fades)
			bad.up, bad.resumed = time.Duration(up)*time.Second, true // how far it may go is said here
			w.edit(web, bad)
			w.pass(6 * time.Hour)
			if n := rolled(w); n != want[i] {
				w.errorf("content that crashes after %d s has reached %d of %d, want %d", up, n, workloads, want[i])
			}
		}
	}
}

// A turn is for the sources for which it came: one that is edited before the patch is sent has room
// of its own.
func TestStory_ASourceIsEditedBetweenTheTurnAndThePatch(t *testing.T) {
	for _, wait := range []time.Duration{0, 300 * time.Millisecond} {
		w := newWorld(t, 1)
		for _, name := range []string{"api", "mailer", "web-app", "worker"} {
			w.add(deployment("shop", name, "web", "extra"))
		}
		w.lead()
		w.pass(time.Minute)
		w.tell("The second step of a good edit has its turn, and another source is edited badly before it rolls.", false)
		held := map[workload.Ref]bool{}
		w.slow = func(ref workload.Ref) bool {
			if w.rolls == 1 && ref.Kind != nil && slices.Contains(w.driver.planner.Granted(), ref) && len(held) < 2 {
				if held[ref] = true; len(held) == 2 {
					w.at(wait, func() {
						w.slow = nil
						w.edit(place("shop", "extra"), w.content(crashes))
					})
				}
			}
			return held[ref]
		}
		w.edit(web, w.content(fine))
		w.pass(time.Hour)
		took := 0
		for _, a := range w.apps {
			took += map[bool]int{true: 1}[a.harm() != nil]
		}
		if len(held) != 2 || took != 1 {
			w.errorf("%d had their turn, and the bad content reached %d, want 2 and 1", len(held), took)
		}
	}
}
