package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Workloads that are not healthy go last in their change, and not before everybody else.
func TestAttack_ManySickOfTwoNamespaces(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 100 {
		a := w.add(deployment(fmt.Sprintf("evil-%d", n%2), fmt.Sprintf("sick-%d", n), fmt.Sprintf("config-%d", n)))
		a.fate, a.hangs, a.deadline = waits, true, 24*time.Hour
	}
	app := w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(5 * time.Minute)
	for n := range 100 {
		w.edit(place(fmt.Sprintf("evil-%d", n%2), fmt.Sprintf("config-%d", n)), w.content(fine))
	}
	w.pass(time.Minute)
	edited := w.now
	w.edit(web, w.content(fine))
	w.pass(24 * time.Hour)
	w.soon(app, edited, w.limits.RolloutDeadline+2*time.Minute)
}

// The same of those that crash, which hold a slot for half a minute each.
func TestAttack_ManyThatCrashOfTwoNamespaces(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 200 {
		w.add(deployment(fmt.Sprintf("evil-%d", n%2), fmt.Sprintf("sick-%d", n), fmt.Sprintf("config-%d", n))).broken = true
	}
	for _, a := range w.apps {
		a.fate = crashes
	}
	app := w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(5 * time.Minute)
	for n := range 200 {
		w.edit(place(fmt.Sprintf("evil-%d", n%2), fmt.Sprintf("config-%d", n)), w.content(fine))
	}
	w.pass(time.Minute)
	edited := w.now
	w.edit(web, w.content(fine))
	w.pass(2 * time.Hour)
	w.soon(app, edited, time.Minute)
}

// Who comes from a namespace in which nothing rolls waits for a slot, and not for all who
// have waited for long.
func TestAttack_ManyWhoHaveWaitedForLong(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 100 {
		a := w.add(deployment(fmt.Sprintf("evil-%d", n%2), fmt.Sprintf("slow-%d", n), fmt.Sprintf("config-%d", n)))
		a.hangs, a.deadline = true, 24*time.Hour
	}
	app := w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(5 * time.Minute)
	for n := range 100 {
		w.edit(place(fmt.Sprintf("evil-%d", n%2), fmt.Sprintf("config-%d", n)), w.content(fine))
	}
	w.pass(12 * time.Minute)
	edited := w.now
	w.edit(web, w.content(fine))
	w.pass(24 * time.Hour)
	w.soon(app, edited, w.limits.RolloutDeadline+2*time.Minute)
}

// A workload that starts waiting while its change is open, and after one has failed for
// whom nobody waited, is held.
func TestAttack_AFailureBesideAPausedCanaryIsForgotten(t *testing.T) {
	w := newWorld(t, 1)
	first, second := 0, 1
	checkout := w.add(canary("shop", "checkout", "web"))
	checkout.order = &first
	api := w.add(deployment("shop", "api", "web"))
	api.order = &second
	late := w.add(deployment("shop", "late", "web"))
	late.paused = true
	w.lead()
	w.pass(2 * time.Minute)
	bad := w.bad()
	w.edit(web, bad)
	w.at(3*time.Second, func() { checkout.fate = fine; w.follow(checkout) })
	w.pass(10 * time.Minute)
	if !api.failed || !checkout.suspended(w.now) {
		t.Fatal("the scenario is wrong")
	}
	late.paused = false
	w.see(late)
	w.pass(time.Hour)
	if len(w.untrue(late)) == 0 {
		t.Error("late has rolled, though api has failed with the change")
	}
}

// spread is three namespaces of a replicated ConfigMap.
func spread(t *testing.T, namespaces int) *world {
	t.Helper()
	w := newWorld(t, 1)
	is := w.content(fine)
	for n := range namespaces {
		for _, name := range []string{"api", "web"} {
			w.contents[place(fmt.Sprintf("ns-%d", n), "trust")] = is
			w.add(deployment(fmt.Sprintf("ns-%d", n), name, "trust"))
		}
	}
	for _, a := range w.apps {
		a.stamp(w.holds)
		a.oldStamps = nil
	}
	w.lead()
	w.pass(2 * time.Minute)
	return w
}

func trust(n int) rollout.SourceRef { return place(fmt.Sprintf("ns-%d", n), "trust") }

// A namespace whose pause ends during a foreign halt is held by it.
func TestAttack_APauseThatEndsDuringAForeignHalt(t *testing.T) {
	w := spread(t, 6)
	for _, n := range []int{4, 5} {
		for _, name := range []string{"api", "web"} {
			w.deployment(fmt.Sprintf("ns-%d", n), name).paused = true
			w.see(w.deployment(fmt.Sprintf("ns-%d", n), name))
		}
	}
	bad := w.bad()
	for n := range 6 {
		w.edit(trust(n), bad)
	}
	w.pass(10 * time.Minute)
	if workloads, _ := w.reached(bad); workloads != 2 {
		t.Fatalf("the scenario is wrong: %d", workloads)
	}
	for _, n := range []int{4, 5} {
		for _, name := range []string{"api", "web"} {
			w.deployment(fmt.Sprintf("ns-%d", n), name).paused = false
			w.see(w.deployment(fmt.Sprintf("ns-%d", n), name))
		}
	}
	w.pass(20 * time.Minute)
	if workloads, namespaces := w.reached(bad); workloads != 2 {
		t.Errorf("a bad bundle has reached %d workloads in %d namespaces, want 2 in 2", workloads, namespaces)
	}
}

// Copies that are written after a new leader began join those that it found.
func TestAttack_LateCopiesAfterANewLeader(t *testing.T) {
	w := spread(t, 8)
	bad := w.bad()
	for n := range 4 {
		w.edit(trust(n), bad)
	}
	w.pass(5 * time.Second)
	w.lead()
	w.pass(5 * time.Second)
	for n := 4; n < 8; n++ {
		w.edit(trust(n), bad)
	}
	w.pass(30 * time.Minute)
	if workloads, namespaces := w.reached(bad); workloads != 2 {
		t.Errorf("a bad bundle has reached %d workloads in %d namespaces, want 2 in 2", workloads, namespaces)
	}
}

// One who puts its copy back again and again, which a controller mends each time, does
// not keep the others waiting.
func TestAttack_OneCopyFlips(t *testing.T) {
	w := spread(t, 4)
	was, next := w.contents[trust(0)], w.content(fine)
	for n := range 4 {
		w.edit(trust(n), next)
	}
	for n := range 200 {
		w.at(time.Duration(n)*50*time.Second, func() {
			w.edit(trust(0), was)
			w.edit(trust(0), next)
		})
	}
	w.pass(2 * time.Hour)
	for n := 1; n < 4; n++ {
		if a := w.deployment(fmt.Sprintf("ns-%d", n), "api"); len(w.untrue(a)) > 0 {
			t.Errorf("%s has waited for 2 h", a.name())
		}
	}
}

// To resume lets the own namespace go on alone.
func TestAttack_ResumedElsewhere(t *testing.T) {
	w := spread(t, 6)
	bad := w.bad()
	for n := range 6 {
		w.edit(trust(n), bad)
	}
	w.pass(10 * time.Minute)
	seen := map[string]bool{}
	for _, v := range w.victims[bad.number] {
		seen[v.a.ref.Namespace] = true
	}
	for n := range 6 {
		if seen[trust(n).Namespace] {
			w.resume(trust(n))
		}
	}
	w.all[bad.number].resumed = false
	w.pass(30 * time.Minute)
	for _, ref := range w.refs() {
		if a := w.apps[ref]; len(w.untrue(a)) == 0 && !seen[ref.Namespace] {
			t.Errorf("%s has rolled, as somebody resumes in another namespace", a.name())
		}
	}
}

// Two namespaces that fail again and again before the foreign halt ends do not make it
// longer.
func TestAttack_AForeignHaltForEver(t *testing.T) {
	w := newWorld(t, 1)
	is := w.content(fine)
	order := 0
	for n := range 6 {
		for m := range 40 {
			w.contents[trust(n)] = is
			if n >= 2 && m > 2 {
				continue
			}
			a := w.add(deployment(fmt.Sprintf("ns-%d", n), fmt.Sprintf("app-%d", m), "trust"))
			if n < 2 {
				a.allergic, a.order = true, &order
			}
		}
	}
	for _, a := range w.apps {
		a.stamp(w.holds)
		a.oldStamps = nil
	}
	w.lead()
	w.pass(2 * time.Minute)
	next := w.content(fine)
	for n := range 2 {
		w.edit(trust(n), next)
	}
	w.pass(5 * time.Second)
	for n := 2; n < 6; n++ {
		w.edit(trust(n), next)
	}
	for n := 1; n < 60; n++ { // the two resume alternately, each 25 minutes
		w.at(time.Duration(n)*25*time.Minute, func() { w.resume(trust(n % 2)) })
	}
	w.pass(12 * time.Hour)
	for _, ref := range w.refs() {
		if a := w.apps[ref]; ref.Namespace > "ns-1" && len(w.untrue(a)) > 0 {
			t.Errorf("%s has waited for 12 h", a.name())
		}
	}
}

// A new leader does not take a pod that was made anew for a proof that came after the
// failures.
func TestAttack_ANewLeaderAfterANodeWasDrained(t *testing.T) {
	drained(t, 2*time.Minute)
}

// The same while such a pod is yet to last for the soak.
func TestAttack_ANewLeaderWhileANodeIsDrained(t *testing.T) { drained(t, 2*time.Second) }

func drained(t *testing.T, after time.Duration) {
	t.Helper()
	w := spread(t, 6)
	bad := w.bad()
	for n := range 6 {
		w.edit(trust(n), bad)
	}
	var lucky *app
	w.at(3*time.Second, func() {
		for _, ref := range w.refs() {
			if a := w.apps[ref]; len(w.untrue(a)) == 0 && lucky == nil {
				lucky = a
				a.fate = fine
				w.follow(a)
			}
		}
	})
	w.pass(10 * time.Minute)
	before := rolled(w)
	if lucky == nil {
		t.Fatal("nobody")
	}
	lucky.drained = w.now
	w.pass(after)
	w.lead()
	w.pass(30 * time.Minute)
	if after := rolled(w); after > before {
		t.Errorf("%d more have rolled during the foreign halt", after-before)
	}
}

// bad is a content that crashes, of which the test itself says how far it may go.
func (w *world) bad() *content {
	c := w.content(crashes)
	w.forgiven[c.number], c.copies = 1000, 2
	return c
}

func rolled(w *world) (n int) {
	for _, a := range w.apps {
		if len(w.untrue(a)) == 0 {
			n++
		}
	}
	return n
}

// A workload whose turn has come, and which is not looked at before its change halts,
// does not roll.
func TestAttack_GrantedBeforeTheHalt(t *testing.T) {
	w := shop(t)
	w.deployment("shop", "api").fate = fine
	bad := w.bad()
	w.edit(web, bad)
	// the first of them has luck
	w.at(2500*time.Millisecond, func() { w.deployment("shop", "api").fate = fine; w.follow(w.deployment("shop", "api")) })
	var kept workload.Ref
	d := w.driver
	w.slow = func(ref workload.Ref) bool { // one look is under way for 50 s
		if ref.Kind == nil || rolled(w) == 0 {
			return false
		}
		if kept.Kind == nil {
			for _, granted := range d.planner.Granted() {
				if granted == ref {
					kept = ref
					w.at(45*time.Second, func() { w.slow = nil; d.queue.add(ref) })
				}
			}
		}
		return ref == kept
	}
	w.pass(10 * time.Minute)
	if n := rolled(w); n > 2 {
		t.Errorf("%d have rolled, want 2: one that was healthy and one that failed", n)
	}
}

// What a plan knows of sources that are gone for ever is bounded.
func TestAttack_FailuresOfNamespacesThatAreGone(t *testing.T) {
	w := newWorld(t, 1)
	w.add(deployment("shop", "web-app", "web"))
	w.lead()
	for n := range 300 {
		ns := fmt.Sprintf("preview-%d", n)
		a := w.add(deployment(ns, "app", "config"))
		w.see(a)
		w.pass(5 * time.Second)
		w.edit(place(ns, "config"), w.bad())
		w.pass(2 * time.Minute)
		w.remove(a)
		w.pass(time.Minute)
	}
	if n := w.driver.value().FieldByName("tracks").Len(); n > 10 {
		t.Errorf("the planner holds %d workloads that are gone", n)
	}
}

// Those whose pauses end one after the other cost one look each at the others, and not
// each a list of everybody's pods.
func TestAttack_PausesThatEndOneAfterTheOther(t *testing.T) {
	w := spread(t, 40)
	w.limits.Unsettled = rollout.Number(40)
	w.lead()
	w.pass(2 * time.Minute)
	for n := 20; n < 40; n++ {
		for _, name := range []string{"api", "web"} {
			w.deployment(fmt.Sprintf("ns-%d", n), name).paused = true
			w.see(w.deployment(fmt.Sprintf("ns-%d", n), name))
		}
	}
	good := w.content(fine)
	for n := range 40 {
		w.edit(trust(n), good)
	}
	w.pass(time.Hour)
	looks := w.looks
	for n := 20; n < 40; n++ {
		for _, name := range []string{"api", "web"} {
			w.deployment(fmt.Sprintf("ns-%d", n), name).paused = false
			w.see(w.deployment(fmt.Sprintf("ns-%d", n), name))
		}
		w.pass(10 * time.Minute)
	}
	w.checkRolled(80)
	if each := (w.looks - looks) / 20; each > 60 {
		t.Errorf("%d looks for each pause that ends", each)
	}
}

// A workload that has become healthy with what it had failed with halts nobody later.
func TestAttack_AFailureThatHasHealed(t *testing.T) {
	w := newWorld(t, 1)
	api := w.add(deployment("shop", "api", "web", "other"))
	late := w.add(deployment("shop", "late", "web"))
	late.paused = true
	w.lead()
	w.pass(2 * time.Minute)
	api.allergic = true
	w.edit(web, w.content(fine))
	w.pass(5 * time.Minute)
	if !api.failed {
		t.Fatal("the scenario is wrong")
	}
	api.allergic = false
	w.edit(place("shop", "other"), w.content(fine))
	w.pass(10 * time.Minute)
	w.mute(api)
	w.pass(5 * time.Minute)
	late.paused = false
	w.see(late)
	w.pass(time.Hour)
	if len(w.untrue(late)) > 0 {
		t.Errorf("late waits for %q by a failure that has healed", late.why)
	}
}
