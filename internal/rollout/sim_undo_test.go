package rollout_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

var undoSeeds = flag.Int("undo-seeds", 100, "how many seeds TestSimulation_Undo takes")

// history is what an undo of a workload may go back to, and has sent back.
type history struct {
	revisions []revision   // the newest last
	unproven  map[int]bool // the numbers of the contents that it took and was not well with
	returned  bool         // it carries one of them once more: that counts as if it had failed
	again     bool         // so did its newest revision but one
	// declined are the numbers of contents that undos have sent back, the newest first, and
	// since when.
	declined      map[checksum.Source][]int
	declinedSince map[checksum.Source]time.Time
}

// revision is a template of before.
type revision struct {
	carried map[checksum.Source]*content
	stamps  map[string]string
	made    time.Time
}

func (a *app) remember() {
	const kept = 5
	if a.unproven == nil {
		a.unproven = map[int]bool{}
	}
	a.again, a.returned = a.returned, false
	if n := len(a.revisions); n > 0 {
		for source, c := range a.carried {
			if was := a.revisions[n-1].carried[source]; was == nil || was.number != c.number {
				a.returned = a.returned || a.unproven[c.number]
				a.unproven[c.number] = true
			}
		}
	}
	a.revisions = append(a.revisions, revision{a.carried, a.stamps, time.Time{}})
	a.revisions = a.revisions[max(0, len(a.revisions)-kept):]
}

func (a *app) declines(source checksum.Source, is *content) bool {
	return is != nil && slices.Contains(a.declined[source], is.number)
}

func (a *app) declinedText() string {
	if len(a.declined) == 0 {
		return ""
	}
	return fmt.Sprint(a.declined) // its keys are sorted
}

// declinesNow reports whether an undo has sent back what a source holds now, and the
// workload carries something else.
func (w *world) declinesNow(a *app, source checksum.Source) bool {
	is := w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}]
	return a.carried[source] != nil && is != nil && a.carried[source].number != is.number && a.declines(source, is)
}

// undo has somebody bring the template of a workload back to a revision of before: 1 is the
// newest but one.
func (w *world) undo(a *app, back int) {
	if len(a.revisions) <= back || !a.served() {
		return
	}
	to := a.revisions[len(a.revisions)-1-back]
	declined, since := map[checksum.Source][]int{}, map[checksum.Source]time.Time{}
	for _, source := range a.sources {
		is, its := w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}], to.carried[source]
		if its == nil || is == nil {
			continue
		}
		numbers := slices.DeleteFunc(slices.Clone(a.declined[source]), func(n int) bool { return n == its.number || n == is.number })
		if since[source] = a.declinedSince[source]; is.number != its.number {
			if !w.declinesNow(a, source) {
				since[source] = w.now
			}
			numbers = append([]int{is.number}, numbers...)
		}
		if c := w.all[is.number]; c.copies > 1 && is.number == its.number && a.declines(source, is) {
			w.forgiven[c.number]++ // it is taken after all
		}
		if len(numbers) > 0 {
			declined[source] = numbers[:min(len(numbers), 3)]
		}
	}
	a.declined, a.declinedSince = declined, since
	a.oldStamps, a.carried, a.stamps = a.stamps, maps.Clone(to.carried), maps.Clone(to.stamps)
	a.remember()
	a.begin(w.now, w.fateOf(a), time.Time{})
	a.byUs = false
	w.undos++
	w.say(a.name(), "somebody undoes it")
	w.follow(a)
}

// accept has somebody take for a workload what it has declined.
func (w *world) accept(a *app) {
	if len(a.declined) == 0 || !a.served() {
		return
	}
	for source := range a.declined {
		if c := w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}]; c.copies > 1 && w.declinesNow(a, source) {
			w.forgiven[c.number]++ // one namespace less has failed: another one tries
		}
	}
	a.declined, a.declinedSince = nil, nil
	w.say(a.name(), "somebody accepts what is there")
	if untrue := w.untrue(a); len(untrue) > 0 {
		w.roll(a, untrue, false)
	}
	w.see(a)
}

// checkDeclined checks what a workload rolls onto.
func (w *world) checkDeclined(a *app, untrue []checksum.Source) {
	const seen = 5 * time.Second
	for source, c := range a.carried {
		if a.declines(source, c) {
			w.errorf("%s rolls onto what it has declined of %s", a.name(), source)
		}
	}
	resumed := func(source checksum.Source) bool {
		return w.all[a.carried[source].number].resumed // and so is all that changed together with it
	}
	if a.hadFailed || a.again || slices.ContainsFunc(untrue, resumed) { // the former may always be mended
		return
	}
	for _, source := range untrue {
		at := rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}
		for _, ref := range w.bySource[at] {
			if other := w.apps[ref]; other.unreadable.IsZero() && w.declinesNow(other, source) && w.now.Sub(other.declinedSince[source]) > seen {
				w.errorf("%s rolls onto %s, which %s has declined at %s", a.name(), source, other.name(), clock(other.declinedSince[source].Sub(w.zero)))
			}
		}
	}
}

// TestSimulation_Undo is TestSimulation with people who undo workloads, of good changes and
// of bad ones, in one step or more, and accept what there is, or do not. It checks also that
// nothing rolls onto content that an undo has sent back: neither the workload itself, nor
// another one of its namespace, under whichever leader.
func TestSimulation_Undo(t *testing.T) {
	sum := each(t, *undoSeeds, func(t *testing.T, seed uint64) *world {
		return simulateWith(t, seed, func(w *world) {
			for n := range 25 {
				draw := w.random("undo", n)
				w.at(time.Duration(draw.Int64N(int64(chaos))), func() { w.undoOne(n) })
			}
			w.at(chaos+3*time.Hour, w.acceptAll)
		})
	})
	t.Logf("%d seeds: %d undos, %d rolls, %d halts, %d new leaders; the longest wait for a turn was %s", *undoSeeds, sum.undos, sum.rolls, sum.nHalts, sum.leaders, sum.longest)
}

// undoOne has somebody undo a workload: rather one that rolls, or has failed.
func (w *world) undoOne(n int) {
	draw := w.random("who undoes", n)
	a := w.apps[w.order[draw.IntN(len(w.order))]]
	if i := slices.IndexFunc(w.order, func(ref workload.Ref) bool {
		a := w.apps[ref]
		return len(a.revisions) > 1 && a.byUs && w.now.Sub(a.began) < 30*time.Minute && draw.IntN(3) > 0
	}); i >= 0 {
		a = w.apps[w.order[i]]
	}
	if !a.muted.IsZero() || a.broken {
		return
	}
	w.undo(a, 1+draw.IntN(2))
	if draw.IntN(2) == 0 {
		w.at(time.Duration(1+draw.IntN(5400))*time.Second, func() {
			if w.apps[a.ref] == a {
				w.accept(a)
			}
		})
	}
}

// giveBack is what the webhook does with a workload that has failed: it goes back to the newest revision with content that
// it has not declined. If the source holds something else by then, nothing happens. final reports that nothing will.
func (w *world) giveBack(a *app) (went, final bool) {
	if w.flaky && w.draw(a).IntN(4) == 0 {
		return false, false
	}
	for back := 1; back < len(a.revisions); back++ {
		differs, declined := false, false
		for source, its := range a.revisions[len(a.revisions)-1-back].carried {
			is := a.carried[source]
			if is == nil || is.number == its.number {
				continue
			}
			differs, declined = true, declined || a.declines(source, its)
			if w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}].number != is.number {
				return false, false
			}
		}
		if differs && !declined {
			if !a.hadFailed {
				w.errorf("%s goes back, and has not failed", a.name())
			}
			w.undo(a, back)
			return true, false
		}
	}
	return false, true
}

// TestSimulation_Return is TestSimulation with workloads that go back to their former content when they have failed.
// Also then one healthy workload a day takes bad content, and nothing takes content again that it declined.
func TestSimulation_Return(t *testing.T) {
	sum := each(t, *undoSeeds, func(t *testing.T, seed uint64) *world {
		return simulateWith(t, seed, func(w *world) {
			w.gives = true
			for hour := range 12 {
				w.at(chaos+time.Duration(hour)*time.Hour, w.acceptAll)
			}
		})
	})
	t.Logf("%d seeds: %v; %d rolls, %d halts, %d new leaders", *undoSeeds, sum.returned, sum.rolls, sum.nHalts, sum.leaders)
	for _, how := range []reason.Reason{reason.ContentReturned, reason.ReturnDidNotHelp, reason.ReturnImpossible} {
		if sum.returned[how] == 0 {
			t.Errorf("never %s", how)
		}
	}
}

// acceptAll has people accept everything in the end, so that nobody waits for ever.
func (w *world) acceptAll() {
	for _, ref := range w.order {
		w.accept(w.apps[ref])
	}
}

func TestStory_AnUndoHoldsTheOthers(t *testing.T) {
	w := shop(t)
	w.tell("Somebody undoes a workload that a good edit has reached: the others wait, also under a new leader, until the content is accepted for it.", false)
	w.edit(web, w.content(fine))
	w.pass(30 * time.Second)
	api := w.deployment("shop", "api")
	w.undo(api, 1)
	w.pass(time.Hour)
	w.checkCarried(2) // two had their turn before
	w.lead()
	w.pass(time.Hour)
	w.checkCarried(2)
	w.accept(api)
	w.pass(time.Hour)
	w.checkCarried(4)
	w.keep("an-undo-holds-the-others")
}

func TestStory_AnUndoMendsTheFailed(t *testing.T) {
	w := shop(t)
	w.tell("A bad edit stops at one workload, which an undo brings back to health with the old content. That ends no halt, nor does a new leader. The fix rolls to all.", false)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.checkCarried(1)
	w.checkHalts(1)
	w.undo(w.deployment("shop", "api"), 1)
	w.pass(time.Hour)
	w.checkCarried(0)
	w.lead()
	w.pass(time.Hour)
	w.checkCarried(0)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkCarried(4)
}

func TestStory_TheFailedGoesBack(t *testing.T) {
	w := shop(t)
	w.gives = true
	w.tell("A bad edit stops at one workload, which goes back by itself and is well again. The others never move, also under a new leader. The fix rolls to all.", false)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.checkCarried(0)
	w.checkHalts(1)
	if w.returned[reason.ContentReturned] != 1 || len(w.returned) != 1 {
		w.errorf("of workloads that go back came %v", w.returned)
	}
	w.lead()
	w.pass(time.Hour)
	w.checkCarried(0)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkCarried(4)
	if w.undos != 1 {
		w.errorf("%d workloads went back", w.undos)
	}
}

func TestStory_TheLastGoesBackUnderANewLeader(t *testing.T) {
	w := newWorld(t, 1)
	w.gives = true
	api := w.add(deployment("shop", "api", "web"))
	w.lead()
	w.pass(time.Minute)
	w.tell("Nothing but one workload uses a ConfigMap. Its rollout fails under a new leader, which sees by its revisions that an edit began it: it goes back.", false)
	w.edit(web, w.content(crashes))
	w.pass(10 * time.Second)
	if len(w.untrue(api)) > 0 {
		w.errorf("api has not rolled yet")
	}
	w.lead()
	w.pass(10 * time.Minute)
	w.checkCarried(0)
	if w.returned[reason.ContentReturned] != 1 || len(w.returned) != 1 {
		w.errorf("of workloads that go back came %v", w.returned)
	}
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkCarried(1)
}

// Two sources are edited together, and the first workload fails and goes back from both contents. Neither change says
// that a person undid it.
func TestReturn_FromTwoSources(t *testing.T) {
	w := newWorld(t, 1)
	w.gives = true
	for _, name := range []string{"web-app", "api"} {
		w.add(deployment("shop", name, "web", "log"))
	}
	w.lead()
	w.pass(time.Minute)
	w.edit(web, w.content(crashes))
	w.edit(place("shop", "log"), w.content(fine))
	w.pass(5 * time.Minute)
	for _, at := range []rollout.SourceRef{web, place("shop", "log")} {
		news, halted := w.driver.planner.HaltOf(at)
		if !halted || news.Why.Cause != rollout.Crashes || !news.Why.Returned {
			w.errorf("%s is halted %t by %+v, want a failure from which the workload has returned", at.Source, halted, news.Why)
		}
	}
}

// While a StatefulSet waits for its broken pod, the former content cannot have failed to help: that is not said, however
// long it takes until a person deletes the pod.
func TestReturn_WaitsForTheBrokenPod(t *testing.T) {
	w := newWorld(t, 1)
	w.gives = true
	db := newApp(statefulSetKind, "shop", "db", "web")
	db.ordered, db.freed = true, time.Hour
	w.add(db)
	w.lead()
	w.pass(time.Minute)
	w.edit(web, w.content(crashes))
	w.pass(50 * time.Minute)
	if w.undos != 1 || len(w.returned) > 0 {
		w.errorf("it went back %d times, and of that came %v while its broken pod is there", w.undos, w.returned)
	}
	w.pass(20 * time.Minute)
	if w.returned[reason.ContentReturned] != 1 || len(w.returned) != 1 {
		w.errorf("of its return came %v", w.returned)
	}
}

// A workload that went back takes the next edits first, and alone, as one does that has failed and did not go back: several
// bad fixes reach no other workload, and neither its min-interval nor its own rolling back keeps it from a fix.
func TestReturn_TakesTheNextEditFirst(t *testing.T) {
	for _, test := range []struct{ interval, between time.Duration }{{0, 40 * time.Second}, {0, 3 * time.Minute}, {12 * time.Hour, 3 * time.Minute}} {
		w := shop(t)
		w.gives = true
		w.each(func(a *app) { a.interval = test.interval })
		w.pass(24 * time.Hour)
		for range 3 {
			w.edit(web, w.content(crashes))
			w.pass(test.between)
		}
		w.pass(3 * time.Minute)
		for _, a := range w.apps {
			if a.everByUs && a.ref.Name != "api" {
				w.errorf("with an interval of %s, and %s between edits: a bad edit has reached %s, want api alone", test.interval, test.between, a.name())
			}
		}
		w.checkCarried(0)
		w.edit(web, w.content(fine))
		w.pass(2 * time.Hour)
		w.checkCarried(4)
	}
}

// After a return the old content is put back in the source: nothing rolls. A workload that is well is done with that; a
// StatefulSet that still waits for its broken pod has failed until that is deleted, and does not go back further.
func TestReturn_ThenPutBack(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		w := newWorld(t, 1)
		w.gives = true
		db := newApp(statefulSetKind, "shop", "db", "web")
		db.ordered, db.freed = ordered, 3*time.Hour
		w.add(db)
		w.lead()
		w.pass(time.Minute)
		w.edit(web, w.content(fine))
		w.pass(10 * time.Minute)
		was := w.contents[web]
		w.edit(web, w.content(crashes))
		w.pass(3 * time.Minute)
		w.edit(web, was)
		w.pass(time.Hour)
		w.checkCarried(1)
		if is, _ := w.driver.planner.ProgressOf(db.ref, web.Source); ordered != (is.State == rollout.Failed && is.Why.Cause == rollout.Ordered) {
			w.errorf("with a broken pod %t, it is in state %d: %s", ordered, is.State, is.Why)
		}
		w.pass(4 * time.Hour)
		if is, _ := w.driver.planner.ProgressOf(db.ref, web.Source); is.State != rollout.Current || w.undos != 1 {
			w.errorf("after its pod is deleted it is in state %d, and went back %d times", is.State, w.undos)
		}
		if ordered && len(w.returned) > 0 { // by then nothing is halted, and nothing is declined
			w.errorf("of its return came %v", w.returned)
		}
	}
}

// A workload fails after a release, with content that it had before. A new leader reads that off its revisions, and does
// not say that the content is bad.
func TestReturn_NotFromARelease(t *testing.T) {
	w := newWorld(t, 1)
	w.gives = true
	api := w.add(deployment("shop", "api", "web"))
	w.lead()
	w.pass(time.Minute)
	w.edit(web, w.content(fine))
	w.pass(5 * time.Minute)
	api.broken = true
	api.stamp(func(at rollout.SourceRef) *content { return w.contents[at] })
	api.begin(w.now, w.fateOf(api), time.Time{})
	w.see(api)
	w.lead()
	w.pass(time.Hour)
	w.checkCarried(1)
	w.checkHalts(0)
	if len(w.returned) > 0 {
		w.errorf("of workloads that go back came %v", w.returned)
	}
}

// During a pause a workload that has failed does not go back.
func TestReturn_WaitsForThePause(t *testing.T) {
	w := shop(t)
	w.gives = true
	api := w.deployment("shop", "api")
	w.edit(web, w.content(crashes))
	w.pass(10 * time.Second)
	api.paused = true
	w.see(api)
	w.pass(3 * time.Minute)
	w.checkCarried(1)
	api.paused = false
	w.see(api)
	w.pass(2 * time.Minute)
	w.checkCarried(0)
}

func TestStory_AnUndoAndSomebodyWhoResumes(t *testing.T) {
	w := shop(t)
	w.tell("Somebody undoes the first workload of a good edit, and lets the change go on for the others. It keeps the old content until the next edit.", false)
	w.edit(web, w.content(fine))
	w.pass(10 * time.Second)
	w.undo(w.deployment("shop", "api"), 1)
	w.pass(10 * time.Minute)
	w.checkCarried(0)
	w.resume(web)
	w.pass(time.Hour)
	w.checkCarried(3)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkCarried(4)
}

// checkCarried checks how many workloads carry what web holds.
func (w *world) checkCarried(want int) {
	w.t.Helper()
	carried := 0
	for _, a := range w.apps {
		if a.carried[web.Source].number == w.contents[web].number {
			carried++
		}
	}
	if carried != want {
		w.errorf("%d of %d workloads carry what %s holds, want %d", carried, len(w.apps), web.Source, want)
	}
}

// Somebody undoes a workload, and makes it again at once: it takes the bad content, and no
// other workload does.
func TestUndo_IsMadeAgainAtOnce(t *testing.T) {
	w := shop(t)
	w.edit(web, w.content(crashes))
	w.pass(10 * time.Second)
	api := w.deployment("shop", "api")
	w.undo(api, 1)
	w.pass(time.Minute)
	w.checkCarried(0)
	w.remove(api)
	w.pass(time.Second)
	w.remake(api)
	w.pass(time.Hour)
	w.checkCarried(1)
}

// Somebody undoes a workload, and deletes it: another one tries.
func TestUndo_IsDeleted(t *testing.T) {
	w := shop(t)
	w.edit(web, w.content(crashes))
	w.pass(10 * time.Second)
	api := w.deployment("shop", "api")
	w.undo(api, 1)
	w.pass(time.Minute)
	w.remove(api)
	w.pass(time.Hour)
	w.checkCarried(1)
}

// lastRoll is what the two newest revisions of a workload tell.
func (a *app) lastRoll() *rollout.LastRoll {
	last := &rollout.LastRoll{}
	if n := len(a.revisions); n > 1 {
		last.Began = a.revisions[n-1].made
		for source, its := range a.revisions[n-1].carried {
			if was := a.revisions[n-2].carried[source]; was != nil && was.number != its.number {
				last.Sources = append(last.Sources, source)
			}
		}
	}
	slices.SortFunc(last.Sources, checksum.Source.Compare)
	return last
}
