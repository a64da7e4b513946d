package controller

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// fleet is a world in which n workloads use one ConfigMap, all of them well for
// weeks, under a leader who has seen them.
func fleet(t *testing.T, n int, prepare ...func(i int, app *simulatedApp)) (*world, rollout.SourceRef) {
	t.Helper()
	w := newWorld(t)
	return w, w.fill(n, prepare...)
}

// fill gives the world n workloads as fleet tells.
func (w *world) fill(n int, prepare ...func(i int, app *simulatedApp)) rollout.SourceRef {
	at := rollout.SourceRef{Namespace: "shop", Source: configMap("shared")}
	for i := range n {
		app := &simulatedApp{ref: workload.Ref{Kind: w.kind, Namespace: "shop", Name: fmt.Sprintf("app-%02d", i)}, sources: []checksum.Source{at.Source}}
		for _, prepare := range prepare {
			prepare(i, app)
		}
		w.add(app)
	}
	w.clock.Step(30 * 24 * time.Hour)
	w.lead()
	w.pass(time.Minute)
	return at
}

func (w *world) spoil(at rollout.SourceRef) (good *checksum.Content) {
	good = w.contents[at]
	bad := w.newContent()
	w.bad[bad] = true
	w.edit(at, bad)
	return good
}

// rolls is how often each workload has rolled.
func (w *world) rolls() (all []int) {
	for _, ref := range w.names {
		all = append(all, w.apps[ref].rolls)
	}
	return all
}

func (w *world) wantRolls(want ...int) {
	w.t.Helper()
	if got := w.rolls(); !slices.Equal(got, want) {
		w.t.Errorf("the workloads have rolled %v times, want %v", got, want)
	}
}

func (w *world) wantAllTrue() {
	w.t.Helper()
	for _, ref := range w.names {
		if review, err := w.controller.reviewOf(w.t.Context(), ref, w.controller.index.Get(ref)); err != nil || len(review.Untrue) > 0 {
			w.t.Errorf("%s does not carry what is true: %v, %v", ref.Name, review.Untrue, err)
		}
		if !w.isWell(w.apps[ref]) {
			w.t.Errorf("%s is not well", ref.Name)
		}
	}
}

// heard counts events by reason, and gives the last text of each.
func (w *world) heard(reason string) (n int, last string) {
	for _, event := range w.said {
		if event.reason == reason {
			n, last = n+1, event.about+": "+event.text
		}
	}
	return n, last
}

func (w *world) wantHeard(reason string, n int, words ...string) {
	w.t.Helper()
	got, last := w.heard(reason)
	if got != n {
		w.t.Errorf("%s was said %d times, want %d; at last %q", reason, got, n, last)
	}
	for _, word := range words {
		if !strings.Contains(last, word) {
			w.t.Errorf("%s says %q, want %q in it", reason, last, word)
		}
	}
}

func repeated(n, of int) []int { return slices.Repeat([]int{of}, n) }

// Nobody knows what new pods of a source that was immutable have read.
func TestTurns_NothingIsClaimedOfWhatWasMadeAnew(t *testing.T) {
	for anew, claims := range map[bool]int{false: 1, true: 0} {
		w, at := fleet(t, 3)
		w.anew = anew
		w.edit(at, w.newContent())
		w.pass(10 * time.Minute)
		w.wantRolls(1, 1, 1)
		w.wantHeard("ChangeRolledOut", claims)
	}
}

func TestTurns_AGoodChangeRollsInGrowingSteps(t *testing.T) {
	w, at := fleet(t, 20)
	w.edit(at, w.newContent())
	var steps []int
	before := 0
	for range 300 {
		w.pass(time.Second)
		begun := 0
		for _, n := range w.rolls() {
			begun += n
		}
		if begun != before {
			steps = append(steps, begun-before)
		}
		before = begun
	}
	if want := []int{1, 2, 4, 8, 5}; !slices.Equal(steps, want) {
		t.Errorf("they rolled in steps of %v, want %v", steps, want)
	}
	w.wantRolls(repeated(20, 1)...)
	w.wantAllTrue()
	w.wantHeard("ChangeRolledOut", 1, "ConfigMap shared", "20 workloads")
	if n := w.counts(); n != (rollout.Counts{}) {
		t.Errorf("left over: %+v", n)
	}
}

func TestHalt_ABadChangeStopsAtOneWorkload(t *testing.T) {
	for sentence, then := range map[string]struct {
		do    func(w *world, at rollout.SourceRef, good *checksum.Content)
		rolls []int
		well  bool
	}{
		"and stays so":                         {func(*world, rollout.SourceRef, *checksum.Content) {}, append([]int{1}, repeated(19, 0)...), false},
		"put back, that one goes back":         {func(w *world, at rollout.SourceRef, good *checksum.Content) { w.edit(at, good) }, append([]int{2}, repeated(19, 0)...), true},
		"mended, all take it":                  {func(w *world, at rollout.SourceRef, _ *checksum.Content) { w.edit(at, w.newContent()) }, append([]int{2}, repeated(19, 1)...), true},
		"made bad again, it stops at the same": {func(w *world, at rollout.SourceRef, _ *checksum.Content) { w.spoil(at) }, append([]int{2}, repeated(19, 0)...), false},
		"resumed, it stops at the next":        {func(w *world, at rollout.SourceRef, _ *checksum.Content) { w.resume(at) }, append([]int{1, 1}, repeated(18, 0)...), false},
		"well by itself, it goes on": {func(w *world, at rollout.SourceRef, _ *checksum.Content) {
			delete(w.bad, w.contents[at])
			app := w.apps[w.names[0]]
			app.well = w.clock.Now()
			app.version++
			w.see(app.ref)
		}, repeated(20, 1), true},
		"deleted, it goes on to the next": {func(w *world, _ rollout.SourceRef, _ *checksum.Content) { w.remove(w.names[0]) }, append([]int{1}, repeated(18, 0)...), false},
	} {
		for _, leaders := range []string{"one leader", "a new leader before it rolls", "a new leader while it rolls", "a new leader after it failed", "a new leader afterwards"} {
			t.Run(sentence+", "+leaders, func(t *testing.T) {
				w, at := fleet(t, 20)
				newLeader := func(when string) {
					if leaders == "a new leader "+when {
						w.lead()
					}
				}
				good := w.spoil(at)
				w.pass(time.Second)
				newLeader("before it rolls")
				w.pass(10 * time.Second)
				newLeader("while it rolls")
				w.pass(2 * time.Minute)
				w.wantRolls(append([]int{1}, repeated(19, 0)...)...)
				w.wantHeard("RolloutFailed", 1, "Deployment app-00", "CrashLoopBackOff")
				w.wantHeard("RolloutHalted", 19, "Deployment app-00 has failed with this change", "configstamp.dev/resume")
				w.wantHeard("ChangeHalted", 1, "ConfigMap shared", "Deployment app-00 has failed with it")
				newLeader("after it failed")
				w.pass(time.Minute)
				then.do(w, at, good)
				w.pass(5 * time.Second)
				newLeader("afterwards")
				w.pass(10 * time.Minute)
				w.wantRolls(then.rolls...)
				if then.well {
					w.wantAllTrue()
				}
			})
		}
	}
}

// resume sets configstamp.dev/resume on a source, to now.
func (w *world) resume(at rollout.SourceRef) {
	cm := &corev1.ConfigMap{}
	cm.Annotations = map[string]string{"configstamp.dev/resume": w.clock.Now().Format(time.RFC3339)}
	content := &checksum.Content{Entries: w.contents[at].Entries, Policy: checksum.ContentOfConfigMap(cm).Policy}
	content.Policy.ResumeWritten(w.clock.Now())
	w.bad[content] = w.bad[w.contents[at]]
	w.contents[at] = content
	w.controller.Changed(at.Namespace, at.Source)
}

// remove deletes a workload.
func (w *world) remove(ref workload.Ref) {
	delete(w.apps, ref)
	w.names = slices.DeleteFunc(w.names, func(other workload.Ref) bool { return other == ref })
	w.controller.index.Told(ref, nil)
}

func TestTurns_WhoGoesFirst(t *testing.T) {
	w, at := fleet(t, 6, func(i int, app *simulatedApp) {
		switch i {
		case 0:
			app.broken = true
		case 1:
			app.single = true
		case 3:
			app.settings = map[string]string{"configstamp.dev/order": "20"}
		case 4:
			app.single, app.settings = true, map[string]string{"configstamp.dev/order": "10"}
		}
	})
	w.edit(at, w.newContent())
	order := map[string]time.Time{}
	w.pass(3 * time.Minute)
	for _, ref := range w.names {
		order[ref.Name] = w.apps[ref].rolled
	}
	names := []string{"app-04", "app-03", "app-02", "app-05", "app-01", "app-00"}
	for i := 1; i < len(names); i++ {
		if first, second := order[names[i-1]], order[names[i]]; first.IsZero() || second.IsZero() || second.Before(first) {
			t.Errorf("%s rolled at %s, and %s at %s: want the former first", names[i-1], first, names[i], second)
		}
	}
}

func TestTell_PodsThatStartedWithWithdrawnContentAreNamed(t *testing.T) {
	w, at := fleet(t, 3)
	good := w.spoil(at)
	w.pass(time.Minute)
	w.apps[w.names[1]].podStarted = w.clock.Now() // somebody drains a node
	w.pass(time.Minute)
	w.edit(at, good)
	w.pass(time.Minute)
	w.apps[w.names[2]].podStarted = w.clock.Now()
	w.pass(time.Minute)
	w.wantHeard("PodsRunWithdrawnContent", 1, "Deployment app-01", "configmap/shared was put back", "pods started in between: app-01")
	w.wantRolls(2, 0, 0)
}

// Pods that are pinned have not read what was withdrawn.
func TestTell_PinnedPodsReadNothingThatIsWithdrawn(t *testing.T) {
	w, at := fleet(t, 3)
	was := w.contents[at]
	w.controller.options.SnapshotOf = func(string, string, checksum.Source) *checksum.Content { return was }
	pins := checksum.Pins{at.Source: {Snapshot: w.ring.SnapshotName("shop", at.Source, was), Uses: []checksum.Use{checksum.Startup}}}
	for _, name := range w.names {
		w.apps[name].records.Pins = map[string]string{checksum.PinsAnnotation: pins.String()}
		w.see(w.apps[name].ref)
	}
	good := w.spoil(at)
	w.pass(time.Minute)
	w.apps[w.names[1]].podStarted = w.clock.Now()
	w.pass(time.Minute)
	w.edit(at, good)
	w.pass(2 * time.Minute)
	w.wantHeard("PodsRunWithdrawnContent", 0)
}

func TestTurns_StepsOff(t *testing.T) {
	w, at := fleet(t, 5)
	w.limits.Step = 0
	w.lead()
	w.pass(time.Minute)
	w.spoil(at)
	w.pass(10 * time.Second)
	w.wantRolls(repeated(5, 1)...)
}

// A patch that was stored counts, whatever became of its answer, and whatever
// changes before that is found out.
func TestRoll_WhatAnAnswerLeavesOpen(t *testing.T) {
	for sentence, answer := range map[string]error{
		"the connection was lost":      errUncertain,
		"the API server ran into time": apierrors.NewTimeoutError("it may be stored", 0),
		"etcd ran into time":           apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
	} {
		t.Run(sentence, func(t *testing.T) {
			other := configMap("other")
			w, at := fleet(t, 5, func(i int, app *simulatedApp) {
				if i == 0 {
					app.sources = append(app.sources, other)
				}
			})
			first := true
			w.answers = func(*simulatedApp) error {
				if !first {
					return nil
				}
				first = false
				w.edit(rollout.SourceRef{Namespace: "shop", Source: other}, w.newContent())
				return answer
			}
			w.spoil(at)
			w.pass(5 * time.Minute)
			if rolls := w.rolls(); slices.Max(rolls[1:]) > 0 {
				t.Errorf("the workloads have rolled %v times, want the first alone", rolls)
			}
			w.wantHeard("ChangeHalted", 1)
		})
	}
}

func TestHalt_AnEditOfAnotherKeyReleasesNothing(t *testing.T) {
	w, at := fleet(t, 5, func(_ int, app *simulatedApp) { app.keyed = true })
	w.spoil(at)
	w.pass(5 * time.Minute)
	version := w.versions
	for i := range 3 {
		content := checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"version": strconv.Itoa(version), "date": strconv.Itoa(i)}})
		w.bad[content] = true
		w.edit(at, content)
		w.pass(5 * time.Minute)
	}
	w.wantRolls(1, 0, 0, 0, 0)
	w.edit(at, w.newContent())
	w.pass(5 * time.Minute)
	w.wantRolls(2, 1, 1, 1, 1)
}

// What is written between a turn and its patch counts.
func TestTurns_ContentThatComesBetween(t *testing.T) {
	w, at := fleet(t, 7)
	w.edit(at, w.newContent())
	w.pass(4 * time.Second) // the first rolls
	w.apps[w.names[0]].well = w.clock.Now()
	bad := w.newContent()
	w.bad[bad] = true
	w.before = func() { // the watch has not told of it yet
		if w.rolls()[0] == 1 {
			w.contents[at], w.written[at] = bad, w.clock.Now().Truncate(time.Second)
			w.before = nil
			w.at(300*time.Millisecond, func() { w.edit(at, bad) })
		}
	}
	w.pass(10 * time.Minute)
	reached := 0
	for _, n := range w.rolls()[1:] {
		reached += n
	}
	if reached == 0 || reached > 2 {
		t.Errorf("the workloads have rolled %v times: the content that came between a step of two and its patches reached %d", w.rolls(), reached)
	}
	w.wantHeard("ChangeHalted", 1)
}

// A content that has proven itself and fails later is not believed any more.
func TestHalt_AProvenChangeThatFailsLater(t *testing.T) {
	w, at := fleet(t, 8, func(i int, app *simulatedApp) {
		if i >= 3 {
			app.settings = map[string]string{"configstamp.dev/pause": fmt.Sprintf("2026-07-01T0%d:00:00Z", i/4+1)}
		}
	})
	w.edit(at, w.newContent())
	w.pass(10 * time.Minute)
	w.wantRolls(1, 1, 1, 0, 0, 0, 0, 0)
	w.bad[w.contents[at]] = true // what it needs beside is gone
	w.until(time.Date(2026, 7, 1, 1, 30, 0, 0, time.UTC))
	w.wantRolls(1, 1, 1, 1, 0, 0, 0, 0)
	w.until(time.Date(2026, 7, 1, 2, 30, 0, 0, time.UTC))
	w.wantRolls(1, 1, 1, 1, 0, 0, 0, 0)
	w.wantHeard("ChangeHalted", 1)
}

// What holds a workload is told again when it had ended meanwhile, though the workload
// has never rolled.
func TestHeld_IsToldOfEachTime(t *testing.T) {
	w, at := fleet(t, 8, func(i int, app *simulatedApp) {
		app.settings = map[string]string{"configstamp.dev/order": strconv.Itoa(i)}
	})
	first, late := w.apps[w.names[0]], w.apps[w.names[7]]
	said := func(reason string, want int) {
		t.Helper()
		got := 0
		for _, event := range w.said {
			if event.reason == reason && event.about == "Deployment app-07" {
				got++
			}
		}
		if got != want {
			t.Errorf("%s was said %d times of the last one, want %d", reason, got, want)
		}
	}
	w.spoil(at)
	w.pass(2 * time.Minute)
	said("RolloutHalted", 1)
	w.said = nil
	for i, paused := range []string{"true", "false", "true", "false"} {
		late.settings["configstamp.dev/pause"] = paused
		w.touch(late)
		w.pass(time.Minute)
		said("RolloutHeld", i/2+1)
		said("RolloutHalted", 0) // it is the same halt
	}
	delete(w.bad, w.contents[at])
	first.well = w.clock.Now()
	w.touch(first)
	w.pass(15 * time.Second)
	w.spoil(at)
	w.pass(2 * time.Minute)
	w.wantRolls(1, 2, 1, 0, 0, 0, 0, 0) // the second had not shown yet how it does
	said("RolloutHalted", 1)
}
