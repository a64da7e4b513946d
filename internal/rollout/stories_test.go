package rollout_test

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// The stories of a change. Three of all stories are kept in testdata for people to read, one
// line for each thing that happens; go test ./internal/rollout -run TestStory -update writes them.

// shop is a namespace of four Deployments, of which each uses ConfigMap web.
func shop(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 1)
	for _, name := range []string{"web-app", "api", "worker", "mailer"} {
		w.add(deployment("shop", name, "web"))
	}
	w.lead()
	w.pass(time.Minute)
	return w
}

var web = place("shop", "web")

func (w *world) deployment(namespace, name string) *app {
	return w.named(deploymentKind, namespace, name)
}

// checkRolled checks how many workloads carry what is true.
func (w *world) checkRolled(want int) {
	w.t.Helper()
	rolled := 0
	for _, a := range w.apps {
		if len(w.untrue(a)) == 0 {
			rolled++
		}
	}
	if rolled != want {
		w.errorf("%d of %d workloads carry what is true, want %d", rolled, len(w.apps), want)
	}
}

// checkHalts checks how often changes have halted.
func (w *world) checkHalts(want int) {
	w.t.Helper()
	if w.nHalts != want {
		w.errorf("changes have halted %d times, want %d", w.nHalts, want)
	}
}

// checkSteps checks how many workloads have rolled last at each moment, from the first one on.
func (w *world) checkSteps(want ...int) {
	w.t.Helper()
	at := map[time.Time]int{}
	for _, a := range w.apps {
		at[a.began]++
	}
	var steps []int
	for _, moment := range slices.SortedFunc(maps.Keys(at), time.Time.Compare) {
		steps = append(steps, at[moment])
	}
	if !slices.Equal(steps, want) {
		w.errorf("workloads have rolled in steps of %d, want %d", steps, want)
	}
}

func TestStory_AGoodEdit(t *testing.T) {
	w := shop(t)
	w.tell("A good edit of a ConfigMap that four Deployments use rolls one of them first, then two, then the last.", false)
	w.edit(web, w.content(fine))
	w.pass(10 * time.Minute)
	w.checkRolled(4)
	w.checkHalts(0)
	w.checkSteps(1, 2, 1)
}

func TestStory_ABadEditStopsAtOne(t *testing.T) {
	w := shop(t)
	w.tell("A bad edit of a ConfigMap that four Deployments use reaches one of them.", false)
	w.edit(web, w.content(crashes))
	w.pass(24 * time.Hour)
	w.checkRolled(1)
	w.checkHalts(1)
	w.keep("a-bad-edit-stops-at-one")
}

func TestStory_PutBack(t *testing.T) {
	w := shop(t)
	w.tell("A bad edit is put back: the one that has failed rolls back, and nothing else rolls.", false)
	was := w.contents[web]
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.edit(web, was)
	w.pass(time.Hour)
	w.checkRolled(4)
	w.checkHalts(1)
	if w.rolls != 2 {
		w.errorf("%d rolls, want 2", w.rolls)
	}
}

func TestStory_MendedForward(t *testing.T) {
	w := shop(t)
	w.tell("A bad edit is mended by another edit: the change begins anew, and rolls everywhere.", false)
	w.edit(web, w.content(flaps))
	w.pass(5 * time.Minute)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(4)
	w.checkHalts(1)
	w.checkSteps(1, 2, 1)
}

func TestStory_Resumed(t *testing.T) {
	w := shop(t)
	w.tell("One workload cannot stand an edit that is good for the others. A person lets the change go on.", false)
	w.deployment("shop", "api").allergic = true
	w.edit(web, w.content(fine))
	w.pass(5 * time.Minute)
	w.checkRolled(1)
	w.resume(web)
	w.pass(time.Hour)
	w.checkRolled(4)
	w.checkHalts(1)
}

func TestStory_AFailureThatHealsByItself(t *testing.T) {
	w := shop(t)
	w.tell("The first workload waits for a node for twenty minutes. The change stops meanwhile, and goes on by itself.", false)
	api := w.deployment("shop", "api")
	api.hangs = true
	w.edit(web, w.content(fine))
	w.pass(20 * time.Minute)
	w.checkRolled(1)
	w.checkHalts(1)
	api.until = w.now.Add(time.Second)
	w.follow(api)
	w.pass(time.Hour)
	w.checkRolled(4)
	w.checkHalts(1)
}

// A leader is killed at each stage of a bad edit that is put back later.
func TestStory_LeaderKilledAtEachStage(t *testing.T) {
	for _, stage := range []struct {
		at   time.Duration
		what string
	}{
		{time.Second, "while the edit settles"},
		{4 * time.Second, "while the first workload rolls"},
		{33 * time.Second, "before it has crashed for long enough"},
		{10 * time.Minute, "while the change is halted"},
		{30*time.Minute + time.Second, "while what is put back settles"},
		{30*time.Minute + 10*time.Second, "while the first workload rolls back"},
	} {
		w := shop(t)
		w.tell("The leader is killed "+stage.what+".", false)
		was := w.contents[web]
		w.edit(web, w.content(crashes))
		w.at(stage.at, w.lead)
		w.pass(30 * time.Minute)
		w.checkRolled(1)
		w.edit(web, was)
		w.pass(time.Hour)
		w.checkRolled(4)
		if w.rolls != 2 {
			w.errorf("the leader is killed %s: %d rolls, want 2", stage.what, w.rolls)
		}
	}
}

func TestStory_LeaderKilledWhileAGoodEditRolls(t *testing.T) {
	w := shop(t)
	w.tell("A leader is killed each twenty seconds while a good edit rolls.", false)
	w.edit(web, w.content(fine))
	for range 6 {
		w.pass(20 * time.Second)
		w.lead()
	}
	w.pass(time.Hour)
	w.checkRolled(4)
	w.checkHalts(0)
	w.checkSteps(1, 2, 1)
	if w.rolls != 4 {
		w.errorf("%d rolls, want 4", w.rolls)
	}
}

func TestStory_AHaltAndSomebodyWhoOptsOut(t *testing.T) {
	w := shop(t)
	w.tell("The workload that has failed is opted out: that ends no halt. Nor does taking it to no replicas, or a new leader.", false)
	api := w.deployment("shop", "api")
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	api.optedOut = true
	w.say(api.name(), "somebody opts it out")
	w.see(api)
	w.pass(10 * time.Minute)
	w.lead()
	w.pass(10 * time.Minute)
	w.mute(api)
	w.pass(10 * time.Minute)
	w.checkRolled(1)
	w.edit(web, w.content(fine))
	w.pass(10 * time.Minute)
	w.checkRolled(3)
	api.optedOut = false
	w.say(api.name(), "somebody opts it in")
	w.see(api)
	w.unmute(api)
	w.pass(time.Hour)
	w.checkRolled(4)
}

func TestStory_AFailureThatIsDeleted(t *testing.T) {
	w := shop(t)
	w.tell("The workload that has failed is deleted, and not made again at once: another one tries.", false)
	w.edit(web, w.content(crashes))
	w.pass(5 * time.Minute)
	w.remove(w.deployment("shop", "api"))
	w.pass(20 * time.Minute)
	w.checkRolled(1)
	w.checkHalts(2)
}
