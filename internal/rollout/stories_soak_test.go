package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Stories of the first soak, at the defaults: --soak=10s, --first-soak=30s. Each Deployment
// has two pods, and is well 8 s after it has begun.
const (
	firstSoak = 30 * time.Second
	takes     = 8 * time.Second
)

// fleet is some Deployments of two pods that use ConfigMap web. web-app is the first.
func fleet(t *testing.T, workloads int) *world {
	t.Helper()
	w := newWorld(t, 1)
	w.limits.FirstSoak = firstSoak
	for n := range workloads {
		name, order := fmt.Sprintf("app-%03d", n), 1
		if n == 0 {
			name, order = "web-app", 0
		}
		a := w.add(deployment("shop", name, "web"))
		a.replicas, a.order = 2, &order
	}
	w.lead()
	w.pass(time.Minute)
	return w
}

// checkGaps checks how long after each other the first steps have begun.
func (w *world) checkGaps(want ...time.Duration) {
	w.t.Helper()
	at := map[time.Time]bool{}
	for _, a := range w.apps {
		if !a.began.IsZero() {
			at[a.began] = true
		}
	}
	moments := slices.SortedFunc(maps.Keys(at), time.Time.Compare)
	var gaps []time.Duration
	for i := 1; i < len(moments) && i <= len(want); i++ {
		gaps = append(gaps, moments[i].Sub(moments[i-1]).Round(100*time.Millisecond)) // a crowd takes a moment
	}
	if !slices.Equal(gaps, want) {
		w.errorf("steps have begun %s after each other, want %s", gaps, want)
	}
}

func TestStory_AGoodEditIsWatchedForLongOnce(t *testing.T) {
	w := fleet(t, 10)
	w.tell("Ten Deployments take a good edit. The second begins when the first was well for a minute; each later step ten seconds after the one before.", false)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(10)
	w.checkHalts(0)
	w.checkSteps(1, 2, 4, 3)
	w.checkGaps(takes+time.Minute, takes+w.limits.Soak, takes+w.limits.Soak)
}

// The more workloads a change concerns, the longer the first soak. Of fewer than three there
// is none.
func TestStory_TheFirstSoakFollowsHowManyThereAre(t *testing.T) {
	for workloads, want := range map[int]time.Duration{
		2: 10 * time.Second, 3: firstSoak, 9: firstSoak, 10: 2 * firstSoak, 99: 2 * firstSoak, 100: 10 * firstSoak,
	} {
		w := fleet(t, workloads)
		w.tell(fmt.Sprintf("%d Deployments take a good edit.", workloads), true)
		w.edit(web, w.content(fine))
		w.pass(time.Hour)
		w.checkRolled(workloads)
		w.checkGaps(takes + want)
	}
}

func TestStory_AReplicatedEditIsWatchedForAllNamespaces(t *testing.T) {
	w := newWorld(t, 1)
	w.limits.FirstSoak = firstSoak
	is := w.content(fine)
	for n := range 10 {
		namespace := fmt.Sprintf("ns-%d", n)
		w.contents[place(namespace, "trust")] = is
		w.add(deployment(namespace, "app", "trust")).replicas = 2
	}
	w.lead()
	w.pass(time.Minute)
	w.tell("A ConfigMap is replicated to ten namespaces, of which each has one Deployment.", false)
	next := w.content(fine)
	next.copies = 10
	for n := range 10 {
		w.edit(place(fmt.Sprintf("ns-%d", n), "trust"), next)
	}
	w.pass(time.Hour)
	w.checkRolled(10)
	w.checkGaps(takes+time.Minute, takes+w.limits.Soak)
}

func TestStory_TheSettingSoak(t *testing.T) {
	for _, soak := range []time.Duration{0, 5 * time.Second, 3 * time.Minute, time.Hour} {
		w := fleet(t, 10)
		w.tell(fmt.Sprintf("The first of ten Deployments says soak: %s, which counts for it alone.", soak), false)
		w.deployment("shop", "web-app").soak = checksum.Soak{For: soak, Given: true}
		w.edit(web, w.content(fine))
		w.pass(3 * time.Hour)
		w.checkRolled(10)
		w.checkGaps(takes+soak, takes+w.limits.Soak)
	}
}

// A new leader does not know for how long the first was well: its soak begins anew, however
// much of it has passed.
func TestStory_ANewLeaderInTheFirstSoak(t *testing.T) {
	for _, passed := range []time.Duration{takes + 15*time.Second, takes + 45*time.Second} {
		w := fleet(t, 10)
		w.tell(fmt.Sprintf("A new leader comes %s after the first of ten Deployments has begun.", passed), false)
		w.edit(web, w.content(fine))
		w.pass(settle + passed)
		w.lead()
		w.pass(time.Hour)
		w.checkRolled(10)
		w.checkHalts(0)
		w.checkGaps(passed+time.Minute, takes+w.limits.Soak)
	}
}

func TestStory_ANewLeaderHasNotLookedAtAll(t *testing.T) {
	const passed = takes + 45*time.Second
	w := fleet(t, 10)
	w.tell("A new leader has looked at two of ten Deployments, of which one waits: it knows that there may be more.", false)
	w.edit(web, w.content(fine))
	w.pass(settle + passed)
	w.slow = func(ref workload.Ref) bool { return ref.Kind != nil && ref.Name != "web-app" && ref.Name != "app-001" }
	w.lead()
	w.pass(5 * time.Second)
	w.slow = nil
	for _, ref := range w.refs() {
		w.driver.queue.add(ref)
	}
	w.pass(time.Hour)
	w.checkRolled(10)
	w.checkGaps(passed+time.Minute, takes+w.limits.Soak)
}

// A bad edit that crashes late, and a new leader before it does.
func TestStory_ANewLeaderAndABadEditThatCrashesLate(t *testing.T) {
	w := fleet(t, 10)
	w.tell("A new leader comes before the first of ten Deployments crashes.", false)
	w.edit(web, w.content(fades))
	w.pass(settle + 10*time.Second)
	w.lead()
	w.pass(time.Hour)
	w.checkRolled(1)
	w.checkHalts(1)
}

func TestStory_ACanaryInTheFirstSoak(t *testing.T) {
	w := fleet(t, 10)
	order := -1
	checkout := w.add(canary("shop", "checkout", "web"))
	checkout.order = &order
	w.see(checkout)
	w.tell("A canary goes first, and stands at its pause. The next begins when its new pod was up for a minute; that one is watched for a minute too, as a pause proves nothing.", false)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(11)
	const seen = 10 * time.Second // its pod, which was up after four: nothing happens for a moment
	w.checkGaps(seen+time.Minute, takes+time.Minute, takes+w.limits.Soak)
}

// Scaling a canary that stands at its pause does not begin its soak anew, though its controller sees it later.
func TestStory_ACanaryIsScaledAtItsPause(t *testing.T) {
	w := fleet(t, 10)
	order := -1
	checkout := w.add(canary("shop", "checkout", "web"))
	checkout.order, checkout.lag = &order, time.Second
	w.see(checkout)
	w.tell("A canary goes first, stands at its pause, and is scaled every twenty seconds from then on.", true)
	w.edit(web, w.content(fine))
	for w.pass(time.Second); !w.driver.atPause(checkout.ref); {
		w.pass(time.Second)
	}
	for n := range 30 {
		w.scale(checkout, 4+n%2)
		w.pass(20 * time.Second)
	}
	w.checkRolled(11)
}

// Somebody else stamps the first with new content, such as by a release.
func TestStory_SomebodyElseBeginsTheFirstSoak(t *testing.T) {
	for _, content := range []fate{fine, fades} {
		w := fleet(t, 10)
		w.tell("Somebody changes the template of one of ten Deployments while an edit settles.", false)
		w.edit(web, w.content(content))
		w.pass(time.Second)
		app := w.deployment("shop", "web-app")
		w.roll(app, w.untrue(app), false)
		w.see(app)
		w.pass(time.Hour)
		if content == fine {
			w.checkRolled(10)
			w.checkGaps(takes+time.Minute, takes+w.limits.Soak)
		} else {
			w.checkRolled(1)
			w.checkHalts(1)
		}
	}
}

func TestStory_ProvenWhileAnotherIsOnTrial(t *testing.T) {
	w := fleet(t, 10)
	w.limits.Step = 2
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("The first step has two Deployments. One is proven after 68 s; by then the other was well for eight, and two more are enough.", false)
	slow := w.deployment("shop", "app-001")
	first := 0
	slow.order, slow.pace = &first, 30*time.Second
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(10)
	w.checkSteps(2, 4, 4)
	w.checkGaps(70 * time.Second)
}

// What has been proven once is known to whoever comes later.
func TestStory_LaterOnesTakeTheShortSoak(t *testing.T) {
	w := fleet(t, 10)
	w.tell("Three of ten Deployments are paused, and go on an hour after the others.", false)
	late := []string{"app-007", "app-008", "app-009"}
	for _, name := range late {
		w.deployment("shop", name).paused = true
		w.see(w.deployment("shop", name))
	}
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(7)
	for _, name := range late {
		w.deployment("shop", name).paused = false
		w.see(w.deployment("shop", name))
	}
	w.pass(settle + takes + w.limits.Soak + time.Second)
	w.checkRolled(10)
	for _, name := range late {
		if a := w.deployment("shop", name); w.driver.follows(a.ref) {
			w.errorf("%s is followed for longer than --soak", a.name())
		}
	}
}

// What cannot tell its health has rolled for the change all the same.
func TestStory_WhatHasRolledCounts(t *testing.T) {
	w := fleet(t, 3)
	w.tell("One of three Deployments has no replicas, and goes first: it is stamped, and counts.", false)
	first, mute := -1, w.deployment("shop", "app-001")
	mute.order = &first
	w.mute(mute)
	w.pass(time.Minute)
	w.edit(web, w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(3)
	if gap := w.deployment("shop", "app-002").began.Sub(w.deployment("shop", "web-app").began); gap != takes+firstSoak {
		w.errorf("the second has begun %s after the first, want %s", gap, takes+firstSoak)
	}
}

// Who halts a change ends the halt after the first soak, whatever made it well.
func TestStory_AHaltEndsAfterTheFirstSoak(t *testing.T) {
	w := fleet(t, 12)
	app := w.deployment("shop", "web-app")
	own := w.add(deployment("shop", "own", "own"))
	w.remove(own)
	app.sources = append(app.sources, own.sources...)
	w.bySource[place("shop", "own")] = []workload.Ref{app.ref}
	app.stamp(w.holds)
	w.lead()
	w.pass(2 * time.Minute)
	w.tell("The first of twelve Deployments fails, and an edit of a ConfigMap of its own mends it.", false)
	app.allergic = true
	w.edit(web, w.content(fine))
	w.pass(10 * time.Minute)
	w.checkRolled(1)
	w.checkHalts(1)
	app.allergic = false
	w.edit(place("shop", "own"), w.content(fine))
	w.pass(time.Hour)
	w.checkRolled(12)
	w.checkGaps(takes+time.Minute, takes+w.limits.Soak, takes+w.limits.Soak) // by that it has proven both
}

// What was seen of the pods before proves nothing of those that are made now.
func TestStory_OneThatRollsOnceMoreIsWatchedAnew(t *testing.T) {
	w := fleet(t, 4)
	w.limits.FirstSoak, w.forbidden = 0, everywhere
	w.lead()
	w.pass(time.Minute)
	w.tell("Pods cannot be listed. Somebody rolls the one that tries a bad content, for another reason and while it is watched.", false)
	bad := w.content(fades)
	bad.up = 9 * time.Second
	w.edit(web, bad)
	w.pass(8 * time.Second)
	w.checkRolled(1)
	w.roll(w.deployment("shop", "web-app"), nil, false)
	w.see(w.deployment("shop", "web-app"))
	w.pass(time.Hour)
	w.checkRolled(1)
	w.checkHalts(1)
}
