package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Stories of workloads that hold up others, where nothing may be held up without end.

func TestStory_TenStuck(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 10 {
		a := w.add(deployment(fmt.Sprintf("tenant-%d", n%2), fmt.Sprintf("stuck-%d", n), fmt.Sprintf("config-%d", n)))
		a.hangs, a.deadline = true, 24*time.Hour
	}
	app := w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("Ten Deployments with progressDeadlineSeconds: 86400 roll, and their pods cannot be scheduled.\nThey hold ten slots for the rollout deadline, ten minutes, and no longer.", false)
	for n := range 10 {
		w.edit(place(fmt.Sprintf("tenant-%d", n%2), fmt.Sprintf("config-%d", n)), w.content(fine))
	}
	w.pass(time.Minute)
	edited := w.now
	w.edit(web, w.content(fine))
	w.pass(5 * time.Minute)
	w.checkRolled(10) // which hold all slots
	w.pass(3 * 24 * time.Hour)
	w.checkRolled(11)
	w.soon(app, edited, w.limits.RolloutDeadline+time.Minute)
}

func TestStory_TenUnknown(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 10 {
		w.add(knative(fmt.Sprintf("tenant-%d", n%2), fmt.Sprintf("stuck-%d", n), fmt.Sprintf("config-%d", n))).hangs = true
	}
	app := w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("Ten Knative Services stay Unknown.", false)
	for n := range 10 {
		w.edit(place(fmt.Sprintf("tenant-%d", n%2), fmt.Sprintf("config-%d", n)), w.content(fine))
	}
	w.pass(time.Minute)
	edited := w.now
	w.edit(web, w.content(fine))
	w.pass(5 * time.Minute)
	w.checkRolled(10) // which hold all slots
	w.pass(3 * 24 * time.Hour)
	w.checkRolled(11)
	w.soon(app, edited, w.limits.RolloutDeadline+time.Minute)
}

func TestStory_ALostAnswer(t *testing.T) {
	w := newWorld(t, 1)
	db := w.add(newApp(statefulSetKind, "shop", "db", "web"))
	db.replicas, db.pace, db.loses = 20, time.Minute, true
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("The answer to the patch of a StatefulSet is lost, which takes twenty minutes for its twenty pods.\nWhat its status says before the watch tells of the patch is no progress.", false)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(1)
	w.checkHalts(0)
	if db.failed {
		w.errorf("%s counts as failed, though it went on all the time", db.name())
	}
}

func TestStory_AKnativeServiceAndANewLeader(t *testing.T) {
	w := newWorld(t, 1)
	first := 0
	w.add(knative("shop", "api", "web")).order = &first
	w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("A bad edit reaches a Knative Service, whose pods cannot be selected: its condition alone tells since when it is Unknown.\nA new leader finds that it rolls.", false)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.lead()
	w.pass(time.Hour)
	w.checkRolled(1)
	w.checkHalts(1)
}

func TestStory_ResumingOneOfTwo(t *testing.T) {
	w := newWorld(t, 1)
	w.add(deployment("shop", "api", "one"))
	w.add(deployment("shop", "cart", "two"))
	w.add(deployment("shop", "web-app", "one", "two"))
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("Two bad edits halt, of ConfigMaps that a third workload uses both. A new leader begins, and a person lets the first go on.\nThat is no word on the second.", false)
	w.edit(place("shop", "one"), w.content(crashes))
	w.pass(5 * time.Minute)
	w.edit(place("shop", "two"), w.content(crashes))
	w.pass(5 * time.Minute)
	w.lead()
	w.pass(5 * time.Minute)
	w.resume(place("shop", "one"))
	w.pass(time.Hour)
	w.checkRolled(2)
	if w.halts[place("shop", "one")] || !w.halts[place("shop", "two")] {
		w.errorf("what is halted is %v, want the second alone", w.halts)
	}
}

func TestStory_TwoBusy(t *testing.T) {
	w := newWorld(t, 1)
	agent := w.add(daemonSet("infra", "agent", 5000, "web"))
	agent.batch, agent.pace = 10, 30*time.Second
	scaled := w.add(deployment("infra", "scaled", "web"))
	sick := w.add(deployment("infra", "sick", "web"))
	sick.broken, sick.fate = true, crashes
	w.lead()
	w.pass(time.Hour)
	w.roll(agent, nil, false)
	w.see(agent)
	w.generates(scaled, 0)
	w.pass(5 * time.Minute)
	w.tell("A DaemonSet rolls an image over 5,000 nodes for four hours, an autoscaler makes new generations of a Deployment, and a third workload crashes until an edit mends it.\nThe busy ones are waited for no longer than the rollout deadline, and not one for the other.", false)
	edited := w.now
	sick.broken = false // by what it gets
	w.edit(place("infra", "web"), w.content(fine))
	w.pass(3 * time.Hour)
	w.mended = true
	w.pass(3 * time.Hour)
	for _, a := range []*app{agent, scaled, sick} {
		w.soon(a, edited, 3*w.limits.RolloutDeadline+5*time.Minute)
	}
}

func TestStory_APausedCanary(t *testing.T) {
	w := newWorld(t, 1)
	first := 0
	checkout := w.add(canary("shop", "checkout", "web"))
	checkout.order = &first
	for _, name := range []string{"api", "cart", "mailer", "search", "web-app", "worker"} {
		w.add(deployment("shop", name, "web"))
	}
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("An Argo Rollout leads, and stands at pause: {} after its first pod: it is neither under way nor proven, and others roll.\nA person aborts it: the change halts. The content is put back.", false)
	was := w.contents[web]
	w.edit(web, w.content(fine))
	w.pass(40 * time.Second)
	rolled := w.rolls
	if rolled < 2 {
		w.errorf("%d of 7 have rolled beside a canary that is paused, want 2 at least", rolled)
	}
	w.abort(checkout)
	w.pass(time.Hour)
	w.checkHalts(1)
	if w.rolls > rolled {
		w.errorf("%d have rolled after the canary was aborted, want none", w.rolls-rolled)
	}
	w.edit(web, was)
	w.pass(10 * time.Minute)
	w.promote(checkout, checkout.generation)
	w.pass(10 * time.Minute)
	w.checkRolled(7)
}

func TestStory_ADaemonSetOf5000(t *testing.T) {
	w := newWorld(t, 1)
	agent := w.add(daemonSet("infra", "agent", 5000, "web"))
	agent.pace = 30 * time.Second
	big := w.add(deployment("infra", "big", "web"))
	big.replicas, big.batch = 50, 10
	small := w.add(deployment("infra", "small", "web"))
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("A DaemonSet on 5,000 nodes, a Deployment of 50 pods and one of three use a ConfigMap.\nThe smallest goes first, whatever their names are.", false)
	w.edit(place("infra", "web"), w.content(fine))
	w.pass(3 * time.Hour)
	w.checkRolled(3)
	w.checkHalts(0)
	if !small.began.Before(big.began) || big.began.After(agent.began) {
		w.errorf("the order is small at %s, big at %s, agent at %s", clock(small.began.Sub(w.zero)), clock(big.began.Sub(w.zero)), clock(agent.began.Sub(w.zero)))
	}
}

func TestStory_ANewLeaderDuringANodeUpgrade(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 40 {
		w.add(deployment(fmt.Sprintf("tenant-%d", n%8), fmt.Sprintf("app-%02d", n), "config"))
	}
	app := w.add(deployment("shop", "web-app", "web"))
	w.lead()
	w.pass(time.Hour)
	w.tell("Nodes are upgraded, so that 40 workloads lack a pod for an hour, and somebody has just restarted them too.\nA new leader begins. They roll for other reasons, and take no slots.", false)
	for n, ref := range w.refs() {
		if ref == app.ref {
			continue
		}
		a := w.apps[ref]
		w.at(time.Duration(n)*time.Second, func() {
			w.restart(a)
			a.disturbed = w.now.Add(time.Hour)
			w.follow(a)
		})
	}
	w.pass(2 * time.Minute)
	w.lead()
	edited := w.now
	w.edit(web, w.content(fine))
	w.pass(2 * time.Hour)
	w.soon(app, edited, time.Minute)
}

// restart is kubectl rollout restart.
func (w *world) restart(a *app) {
	a.begin(w.now, fine, time.Time{})
	a.byUs = false
	w.say(a.name(), "somebody restarts it")
	w.follow(a)
}

// A workload has failed with a bad content, while the only other user of that is paused: no
// workload waits. It rolls for another source, as unhealthy as it is, and fails again. That
// is no reason to forget what it has failed with before.
func TestFaults_WhoFailsAgainHasFailedWithBoth(t *testing.T) {
	w := newWorld(t, 1)
	w.add(deployment("shop", "api", "web", "extra"))
	paused := w.add(deployment("shop", "web-app", "web"))
	paused.paused, paused.held = true, true
	w.lead()
	w.pass(2 * time.Minute)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.edit(place("shop", "extra"), w.content(fine))
	w.pass(15 * time.Minute)
	w.checkRolled(1) // with both
	paused.paused = false
	w.see(paused)
	w.pass(time.Hour)
	w.checkRolled(1)
}

// A halt holds those that wait for it, however many these are, and nobody else.
func TestFaults_AHaltOfOneChangeStarvesNoOther(t *testing.T) {
	w := newWorld(t, 1)
	for n := range 70 {
		w.add(deployment("shop", fmt.Sprintf("both-%02d", n), "web", "flags"))
	}
	for n := range 5 {
		w.add(deployment("shop", fmt.Sprintf("web-%02d", n), "web"))
	}
	w.lead()
	w.pass(time.Minute)
	w.edit(place("shop", "flags"), w.content(crashes))
	w.pass(10 * time.Minute)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	for n := range 5 {
		if a := w.deployment("shop", fmt.Sprintf("web-%02d", n)); a.rolls != 1 {
			t.Errorf("%s has rolled %d times", a.name(), a.rolls)
		}
	}
}

// Nobody waits for a broken one that is not let take the fix.
func TestFaults_OneThatIsRefusedTheFix(t *testing.T) {
	w := fleet(t, 12)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.deployment("shop", "web-app").refusals = 1e6
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	if a := w.deployment("shop", "app-011"); a.rolls != 1 {
		t.Errorf("the last has rolled %d times", a.rolls)
	}
	w.checkHalts(1)
}

// What was refused for one edit makes nobody go behind with the next.
func TestFaults_ARefusalIsOverWithItsEdit(t *testing.T) {
	w := shop(t)
	w.edit(web, w.content(fine))
	w.pass(10 * time.Minute) // it is known since
	api, was := w.deployment("shop", "api"), w.contents[web]
	api.refusals = 1000
	w.edit(web, w.content(fine))
	w.pass(time.Minute)
	if !w.driver.planner.Again(api.ref) {
		t.Fatal("its patch was not refused: the test shows nothing")
	}
	w.edit(web, was)
	w.pass(time.Minute)
	api.refusals = 0
	w.edit(web, w.content(fine))
	w.pass(time.Second)
	if w.driver.planner.Again(api.ref) {
		t.Error("it is said to be tried again, and nothing was tried")
	}
}

// A setting that comes between a turn and its patch takes the turn back; it comes again.
func TestAPauseTakesATurnBack(t *testing.T) {
	c, at := &big{now: time.Unix(1e9, 0), bySource: map[rollout.SourceRef][]workload.Ref{}, contents: map[rollout.SourceRef]*checksum.Content{}, facts: map[workload.Ref]*rollout.Facts{}}, web
	c.add(at, "web")
	ref := c.all[0]
	c.planner = rollout.NewPlanner(benchLimits(), c)
	c.planner.Lead(c.all, c.now)
	c.look(ref, false)
	was := c.content()
	c.contents[at] = c.content()
	c.planner.Edited(at, was, c.contents[at], c.now)
	c.now = c.now.Add(time.Minute)
	looks := func(paused bool) rollout.Verdict {
		f := *c.facts[ref]
		f.Mark, f.Review.Untrue, f.Policy.Pause.On = c.planner.Mark(), f.Sources, paused
		return c.planner.Look(ref, &f, c.now)
	}
	for range 2 {
		if v := looks(false); v.Roll {
			t.Error("it rolls without a turn")
		}
		if out := c.planner.Cycle(c.now); len(out.Roll) != 1 {
			t.Errorf("its turn does not come: %v", out)
		}
		if v := looks(true); v.Roll || v.Why != reason.Paused {
			t.Errorf("paused since its turn came, it gets %v", v)
		}
	}
}
