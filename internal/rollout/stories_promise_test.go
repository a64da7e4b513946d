package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// Stories of ordinary ways around the promise that a bad edit costs one workload, and that nothing
// waits without end. Each was seen to fail before the rule that it names in the planner.

// harmed returns how many workloads carry bad content now.
func (w *world) harmed() (n int) {
	for _, a := range w.apps {
		if a.harm() != nil {
			n++
		}
	}
	return n
}

// checkHarmed checks that bad content has reached one workload.
func (w *world) checkHarmed() {
	w.t.Helper()
	if n := w.harmed(); n != 1 {
		w.errorf("%d of %d workloads carry bad content, want 1", n, len(w.apps))
	}
}

// The webhook reads sources live. While the watch is late, it stamps content that the planner does not
// know yet.
func TestStory_TheWatchIsLate(t *testing.T) {
	for _, late := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 10 * time.Second, 5 * time.Minute} {
		for _, before := range []time.Duration{settle - 10*time.Millisecond, 4 * time.Minute} {
			w := fleet(t, 100)
			w.tell(fmt.Sprintf("A bad edit comes %s after a good one, and the watch delivers it %s later.", before, late), true)
			w.edit(web, w.content(fine))
			w.pass(before)
			rolled := w.rolls
			w.late = late
			w.edit(web, w.content(crashes))
			w.pass(late)
			w.late = 0
			w.pass(3 * time.Hour)
			if most := max(1, w.rolls-rolled); w.harmed() > 1 {
				w.errorf("%d of %d carry the bad content, %d have rolled since, want 1", w.harmed(), len(w.apps), most)
			}
			w.edit(web, w.content(fine))
			w.pass(3 * time.Hour)
			w.checkRolled(100)
		}
	}
}

// What a window or a pause holds counts for the first soak: it rolls later.
func TestStory_MostAreHeld(t *testing.T) {
	for _, workloads := range []int{12, 100} {
		for _, held := range []time.Duration{time.Minute, 8 * time.Hour} {
			w := fleet(t, workloads)
			w.tell(fmt.Sprintf("All but one of %d Deployments are held for %s. The content crashes after 40 s.", workloads, held), true)
			for _, ref := range w.refs() {
				a := w.apps[ref]
				a.paused = ref.Name != "web-app"
				w.see(a)
			}
			w.pass(time.Minute)
			bad := w.content(fades)
			bad.up = 40 * time.Second
			w.edit(web, bad)
			w.pass(held)
			for _, ref := range w.refs() {
				w.apps[ref].paused = false
				w.see(w.apps[ref])
			}
			w.pass(6 * time.Hour)
			w.checkHarmed()
		}
	}
}

// A tool restores bad content that people have taken away, again and again.
func TestStory_BadContentComesAgain(t *testing.T) {
	for _, how := range []fate{crashes, fades} {
		for _, every := range []time.Duration{5 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute} {
			w := fleet(t, 12)
			w.tell(fmt.Sprintf("Bad content comes ten times, and is put back %s later each time.", every), true)
			for _, a := range w.apps {
				a.order = nil
			}
			w.lead()
			w.pass(time.Minute)
			good, bad, touched := w.contents[web], w.content(how), map[string]bool{}
			for range 10 {
				for _, c := range []*content{bad, good} {
					w.edit(web, c)
					for range 10 {
						w.pass(every / 10)
						for _, a := range w.apps {
							touched[a.ref.Name] = touched[a.ref.Name] || a.harm() != nil
						}
					}
				}
			}
			n := 0
			for _, took := range touched {
				if took {
					n++
				}
			}
			if n > 1 {
				w.errorf("the bad content has reached %d of 12, want 1", n)
			}
			w.edit(web, w.content(fine))
			w.pass(2 * time.Hour)
			w.checkRolled(12)
		}
	}
}

// While a workload that has failed waits for its pace, its crashing containers start again with the content
// that was put back. So they are well under the stamp of the bad content, and prove nothing when that returns.
func TestStory_WellWithContentThatWasPutBack(t *testing.T) {
	for _, rest := range []time.Duration{12 * time.Second, 30 * time.Second, 50 * time.Second} {
		w := fleet(t, 4)
		w.tell(fmt.Sprintf("Bad content comes six times, and is put back for %s each time.", rest), true)
		w.deployment("shop", "web-app").backoff = time.Second
		w.lead()
		w.pass(time.Minute)
		good, bad := w.contents[web], w.content(crashes)
		for range 6 {
			w.edit(web, bad)
			w.pass(50 * time.Second)
			w.edit(web, good)
			w.pass(rest)
		}
		w.edit(web, bad)
		w.pass(2 * time.Hour)
		w.checkHarmed()
		w.edit(web, w.content(fine))
		w.pass(2 * time.Hour)
		w.checkRolled(4)
	}
}

// What pods read that started before content left and came back is no matter of doubt.
func TestStory_ContentIsAwayForAMoment(t *testing.T) {
	w := fleet(t, 4)
	w.tell("A good edit is put back while its first workload rolls, and comes again a second later.", false)
	first := w.deployment("shop", "web-app")
	first.replicas, first.pace = 6, 20*time.Second
	w.lead()
	w.pass(time.Minute)
	was, is := w.contents[web], w.content(fine)
	w.edit(web, is)
	w.pass(settle + 30*time.Second)
	w.edit(web, was)
	w.pass(time.Second)
	w.edit(web, is)
	w.pass(2 * time.Hour)
	w.checkHalts(0)
	w.checkRolled(4)
}

// Restarting the pods, as the advice says, shows how they do with the content that returned.
func TestStory_ReturnedContentIsGood(t *testing.T) {
	w := fleet(t, 4)
	w.tell("An edit fails on the first of four for want of a node. It is put back, the pods start, and it comes again.", false)
	first := w.deployment("shop", "web-app")
	first.hangs = true
	w.lead()
	w.pass(time.Minute)
	good, is := w.contents[web], w.content(fine)
	w.edit(web, is)
	w.pass(15 * time.Minute)
	first.paused = true
	w.see(first)
	w.edit(web, good)
	w.pass(time.Minute)
	first.hangs, first.until = false, w.now.Add(time.Second)
	w.follow(first)
	w.pass(time.Minute)
	w.edit(web, is)
	first.paused = false
	w.see(first)
	w.pass(30 * time.Second)
	w.checkRolled(1)
	w.pass(2 * time.Hour)
	w.checkRolled(4)
}

// A user who resumed said so for the content, however often it comes.
func TestStory_ContentThatWasResumedComesAgain(t *testing.T) {
	w := fleet(t, 12)
	w.tell("One of twelve cannot stand an edit. It is resumed, put back, and comes again.", false)
	w.deployment("shop", "web-app").allergic = true
	w.edit(web, w.content(fine))
	w.pass(5 * time.Minute)
	w.checkHalts(1)
	was := w.contents[web]
	w.resume(web)
	w.pass(time.Hour)
	w.checkRolled(12)
	resumed := w.contents[web]
	w.edit(web, w.content(fine))
	w.deployment("shop", "web-app").allergic = false
	w.pass(time.Hour)
	w.checkRolled(12)
	if resumed.number != was.number {
		t.Fatal("resuming has changed the content")
	}
	w.edit(web, resumed)
	w.pass(time.Hour)
	w.checkRolled(12)
	w.checkHalts(1)
}

// A patch whose outcome is not known holds its room and its slot for the deadline at most.
func TestStory_NeitherPatchedNorReadable(t *testing.T) {
	w := fleet(t, 12)
	w.tell("The API server answers each PATCH and GET of the first of twelve Deployments with an error, for a day.", true)
	first := w.deployment("shop", "web-app")
	first.unreadable = w.now.Add(24 * time.Hour)
	w.edit(web, w.content(fine))
	w.pass(2 * time.Hour)
	if n := rolled(w); n < 11 {
		w.errorf("%d of 12 carry the edit, want the others at least", n)
	}
	if n := w.driver.counts(); n.Unsettled != 0 {
		w.errorf("%d slots are taken, want none", n.Unsettled)
	}
}

// Pods that wait for a node, or for a database, would come back by themselves.
func TestStory_NoNodesAtNight(t *testing.T) {
	for _, how := range []fate{crashes, fine} {
		w := fleet(t, 12)
		w.tell("No pod has a node at night, and an edit comes.", false)
		for _, ref := range w.refs() {
			w.lose(w.apps[ref], w.apps[ref].replicas)
		}
		w.pass(10 * time.Minute)
		w.edit(web, w.content(how))
		w.pass(10 * time.Hour)
		w.checkRolled(1)
		for _, ref := range w.refs() {
			w.lose(w.apps[ref], 0)
		}
		w.pass(time.Hour)
		if how == fine {
			w.checkRolled(12)
		} else {
			w.checkHarmed()
		}
	}
}

// Scaling does not end a soak, whether the turn came at the lower number of replicas or at the upper one.
func TestStory_AnAutoscalerScalesTheFirst(t *testing.T) {
	const few = 4
	for _, every := range []time.Duration{20 * time.Second, 45 * time.Second, 150 * time.Second, 280 * time.Second} {
		for _, workloads := range []int{3, 12, 100} {
			for _, c := range []struct {
				from  int
				takes time.Duration
			}{{few, 0}, {few, 8 * time.Second}, {few + 1, 8 * time.Second}} {
				w := fleet(t, workloads)
				w.tell(fmt.Sprintf("An autoscaler scales the first of %d Deployments each %s, from %d replicas on; a new pod takes %s.", workloads, every, c.from, c.takes), true)
				first := w.deployment("shop", "web-app")
				w.scale(first, c.from)
				w.pass(time.Minute)
				for step := range 2 * int(time.Hour/every) {
					w.at(time.Duration(1+step)*every, func() {
						next := few + (c.from-few+step+1)%2
						if next > few && c.takes > 0 {
							first.disturbed, first.grown = w.now.Add(c.takes), w.now
						}
						w.scale(first, next)
					})
				}
				w.edit(web, w.content(fine))
				w.pass(2 * time.Hour)
				w.checkRolled(workloads)
				w.checkHalts(0)
			}
		}
	}
}

// A trial ends: what is never well for a whole soak fails, and that is reported.
func TestStory_AProbeFlaps(t *testing.T) {
	for _, every := range []time.Duration{15 * time.Second, 45 * time.Second, 4 * time.Minute} {
		for _, bot := range []bool{false, true} {
			w := fleet(t, 100)
			w.tell(fmt.Sprintf("A pod of the first of 100 Deployments is not ready for five seconds, each %s.", every), true)
			first := w.deployment("shop", "web-app")
			first.unsteady = true
			for step := range 6 * int(time.Hour/every) {
				w.at(time.Duration(step)*every, func() { first.disturbed = w.now.Add(5 * time.Second); w.follow(first) })
			}
			w.pass(8 * time.Second)
			if bot {
				w.writes(web, 40, 5*time.Minute, fine)
			}
			w.edit(web, w.content(fine))
			w.pass(2 * time.Hour)
			if w.nHalts == 0 && rolled(w) < 100 {
				w.errorf("%d of 100 carry the edit, and nothing is reported", rolled(w))
			}
		}
	}
}

// A queue is walked to its end.
func TestStory_ThoseAtTheEndOfAQueueAreTried(t *testing.T) {
	w := newWorld(t, 1)
	w.limits.FirstSoak = firstSoak
	for n := range 70 {
		w.add(deployment("shop", fmt.Sprintf("both-%03d", n), "web", "extra"))
	}
	for n := range 30 {
		w.add(deployment("shop", fmt.Sprintf("web-%03d", n), "web"))
	}
	only := w.add(deployment("shop", "a-first", "extra"))
	only.soak.For, only.soak.Given = time.Hour, true
	w.lead()
	w.pass(time.Minute)
	w.tell("Seventy Deployments wait for another source, which is on trial for an hour, and go before thirty that use web alone.", true)
	w.edit(place("shop", "extra"), w.content(fine))
	w.pass(5 * time.Second)
	w.edit(web, w.content(fine))
	w.pass(50 * time.Minute)
	for _, ref := range w.order {
		if a := w.apps[ref]; len(a.sources) == 1 && a != only && len(w.untrue(a)) > 0 {
			w.errorf("%s has not rolled", a.name())
		}
	}
}

// Later edits do not begin the minute anew for which a workload is waited for that cannot be read.
func TestStory_OneThatCannotBeReadAndABot(t *testing.T) {
	w := fleet(t, 12)
	w.tell("One of twelve Deployments cannot be read, and a bot writes good content each forty seconds.", true)
	ill := w.deployment("shop", "app-005")
	w.slow = func(ref workload.Ref) bool { return ref == ill.ref }
	w.writes(web, 900, 40*time.Second, fine)
	w.checkTouched(11)
}

// The stamp of a workload that could not be read may be older than what another one has yet to prove. That one
// goes first.
func TestStory_OneThatCannotBeReadAndOneThatIsPaced(t *testing.T) {
	for seed := range uint64(8) { // in some of which the patch was stored
		w := newWorld(t, seed)
		w.tell("The patch of a Deployment is answered with an error, and it cannot be read for nine minutes. Meanwhile a bot writes bad content, which a StatefulSet takes until its pace holds it.", true)
		db, ill := w.add(newApp(statefulSetKind, "shop", "db", "web")), w.add(deployment("shop", "web-app", "web"))
		first := 0
		db.replicas, db.order = 2, &first
		w.lead()
		w.pass(10 * time.Minute)
		w.edit(web, w.content(fine))
		ill.unreadable = w.now.Add(9 * time.Minute)
		w.pass(3 * time.Minute)
		w.writes(web, 6, 80*time.Second, waits)
		if ill.harm() != nil {
			w.errorf("%s has the bad content too", ill.name())
		}
		w.edit(web, w.content(fine))
		w.pass(2 * time.Hour)
		w.checkRolled(2)
	}
}
