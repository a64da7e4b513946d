package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
)

// mute scales a workload to nothing, or back.
func (w *world) mute(app *simulatedApp, mute bool) {
	app.mute, app.muted = mute, w.clock.Now()
	w.touch(app)
}

// touch has the controller see that a workload is another now.
func (w *world) touch(app *simulatedApp) {
	app.version++
	w.see(app.ref)
}

// remake deletes a workload and makes it again a while later: it is stamped with what
// is true then, and starts with it.
func (w *world) remake(app *simulatedApp, after time.Duration) {
	w.controller.index.Told(app.ref, nil)
	w.pass(after)
	app.uid, app.rolled = "again", w.clock.Now()
	w.stamp(app)
	w.touch(app)
}

// Nothing that becomes of the workload that has failed ends a halt, but that it is
// healthy with what the change brought, or deleted.
func TestHalt_OutlastsWhatBecomesOfTheFailedWorkload(t *testing.T) {
	enabled, disabled := map[string]string{checksum.InjectLabel: checksum.InjectEnabled}, map[string]string{checksum.InjectLabel: checksum.InjectDisabled}
	const wave = "wave.pusher.com/update-on-config-change"
	for sentence, way := range map[string]struct {
		apart bool              // the Namespace is not opted in
		label map[string]string // of the one that fails; the others are opted in by theirs
		notes map[string]string // its annotations
		do    func(w *world, app *simulatedApp)
		tells bool // it can still tell that it is healthy
	}{
		"its label says disabled":             {do: func(_ *world, app *simulatedApp) { app.labels = disabled }, tells: true},
		"its label is taken away":             {apart: true, label: enabled, do: func(_ *world, app *simulatedApp) { app.labels = nil }, tells: true},
		"its Namespace's label is taken away": {do: func(w *world, _ *simulatedApp) { w.optedOut = true; w.controller.NamespaceChanged("shop") }, tells: true},
		"its label is taken away, and put back": {apart: true, label: enabled, tells: true, do: func(w *world, app *simulatedApp) {
			app.labels = nil
			w.touch(app)
			w.pass(time.Minute)
			app.labels = enabled
		}},
		"its Namespace's label is taken away from all of them, and put back": {tells: true, do: func(w *world, _ *simulatedApp) {
			for _, app := range w.apps {
				app.labels = nil
				w.touch(app)
			}
			w.optedOut = true
			w.controller.NamespaceChanged("shop")
			w.pass(10 * time.Minute)
			w.optedOut = false
			w.controller.NamespaceChanged("shop")
		}},
		"another product's annotation is taken away": {apart: true, notes: map[string]string{wave: "true"}, do: func(_ *world, app *simulatedApp) { app.settings = nil }, tells: true},
		"it is paused by configstamp.dev/pause":      {do: func(_ *world, app *simulatedApp) { app.settings = map[string]string{"configstamp.dev/pause": "true"} }, tells: true},
		"a setting of it cannot be read":             {do: func(_ *world, app *simulatedApp) { app.settings = map[string]string{"configstamp.dev/pause": "yes"} }, tells: true},
		"it ignores the source": {do: func(_ *world, app *simulatedApp) {
			app.settings = map[string]string{"configstamp.dev/ignore": "configmap/*"}
		}, tells: true},
		"another source alone counts": {do: func(_ *world, app *simulatedApp) {
			app.settings = map[string]string{"configstamp.dev/only": "configmap/other"}
		}, tells: true},
		"it is paused":                           {do: func(w *world, app *simulatedApp) { app.paused, app.muted = true, w.clock.Now() }},
		"it is paused and opted out":             {do: func(w *world, app *simulatedApp) { app.paused, app.muted, app.labels = true, w.clock.Now(), disabled }},
		"it is scaled to zero":                   {do: func(w *world, app *simulatedApp) { w.mute(app, true) }},
		"it is scaled to zero and opted out":     {do: func(w *world, app *simulatedApp) { w.mute(app, true); app.labels = disabled }},
		"its template cannot be read":            {do: func(_ *world, app *simulatedApp) { app.illegible = true }, tells: true},
		"its template cannot be read, opted out": {do: func(_ *world, app *simulatedApp) { app.illegible, app.labels = true, disabled }, tells: true},
		"it is being deleted, and stays":         {do: func(_ *world, app *simulatedApp) { app.deleting = true }, tells: true},
		"it is made again at once":               {do: func(w *world, app *simulatedApp) { w.remake(app, 0) }, tells: true},
		"it is made again soon":                  {do: func(w *world, app *simulatedApp) { w.remake(app, settle-time.Second) }, tells: true},
		"it is made again soon, and opted out":   {do: func(w *world, app *simulatedApp) { app.labels = disabled; w.remake(app, settle-time.Second) }, tells: true},
	} {
		for _, when := range []string{"after it failed", "while it rolls"} {
			for _, leader := range []string{"the same leader", "a new leader", "a new leader at once"} {
				if strings.HasPrefix(sentence, "it is paused") || strings.HasPrefix(sentence, "it is scaled") {
					if when == "while it rolls" {
						continue // it cannot tell how that ends, and counts as settled
					}
				}
				t.Run(sentence+" "+when+", "+leader, func(t *testing.T) {
					w := newWorld(t)
					w.optedOut, w.dialects = way.apart, []checksum.Dialect{checksum.Wave}
					at := w.fill(5, func(i int, app *simulatedApp) {
						if app.labels = enabled; i == 0 {
							app.labels, app.settings = way.label, way.notes
						}
					})
					w.spoil(at)
					if w.pass(5 * time.Second); when == "after it failed" {
						w.pass(5 * time.Minute)
					}
					w.wantRolls(1, 0, 0, 0, 0)
					app := w.apps[w.names[0]]
					way.do(w, app)
					w.touch(app)
					switch leader {
					case "a new leader":
						w.pass(10 * time.Minute)
						w.lead()
					case "a new leader at once":
						w.lead()
					}
					w.pass(20 * time.Minute)
					w.wantRolls(1, 0, 0, 0, 0)
					w.wantHeard("ChangeResumed", 0)
					_, told := w.heard("RolloutHalted")
					if !strings.Contains(told, "Deployment app-00 has failed with this change: ") {
						t.Errorf("the halted ones are told %q", told)
					}
					if n := w.counts(); n != (rollout.Counts{Halted: 1, Held: 4}) {
						t.Errorf("the metrics tell %+v, want one halted change that holds four", n)
					}
					if way.tells { // and does so
						delete(w.bad, w.contents[at])
						app.well = w.clock.Now()
						w.touch(app)
						w.pass(10 * time.Minute)
						w.wantRolls(1, 1, 1, 1, 1)
						w.wantHeard("ChangeResumed", 1)
						return
					}
					w.resume(at)
					w.pass(10 * time.Minute)
					w.wantRolls(1, 1, 0, 0, 0)
					w.wantHeard("ChangeResumed", 1)
				})
			}
		}
	}
}

// The workload that has failed becomes healthy without what the change brought: that
// tells nothing of it.
func TestHalt_OutlastsHealthWithoutTheChange(t *testing.T) {
	for sentence, do := range map[string]func(w *world, app *simulatedApp, before checksum.Records){
		"its old template is brought back, opted out": func(_ *world, app *simulatedApp, before checksum.Records) {
			app.labels = map[string]string{checksum.InjectLabel: checksum.InjectDisabled}
			app.records = before
		},
		"its stamps are taken away, opted out": func(_ *world, app *simulatedApp, _ checksum.Records) {
			app.labels = map[string]string{checksum.InjectLabel: checksum.InjectDisabled}
			app.records = checksum.Records{}
		},
		"it reads another source": func(w *world, app *simulatedApp, _ checksum.Records) {
			app.sources = []checksum.Source{configMap("other")}
			w.contents[rollout.SourceRef{Namespace: "shop", Source: configMap("other")}] = w.newContent()
			app.records = checksum.Records{Stamps: map[string]string{}}
			w.stamp(app)
		},
	} {
		for _, when := range []string{"", ", which rolled for another source as well", ", known to a new leader"} {
			t.Run(sentence+when, func(t *testing.T) {
				also := configMap("also")
				w, at := fleet(t, 5, func(i int, app *simulatedApp) {
					if i == 0 {
						app.sources = append(app.sources, also)
					}
				})
				app := w.apps[w.names[0]]
				before := app.records
				w.spoil(at)
				w.pass(5 * time.Second)
				if when == ", which rolled for another source as well" {
					w.edit(rollout.SourceRef{Namespace: "shop", Source: also}, w.newContent())
				}
				w.pass(5 * time.Minute)
				if when == ", known to a new leader" {
					w.said = nil
					w.lead()
					w.pass(5 * time.Minute)
				}
				do(w, app, before)
				app.well = w.clock.Now()
				w.touch(app)
				w.pass(20 * time.Minute)
				if rolls := w.rolls(); slices.Max(rolls[1:]) > 0 {
					t.Errorf("the workloads have rolled %v times, want none but the first", rolls)
				}
				w.wantHeard("ChangeHalted", 1)
				w.wantHeard("ChangeResumed", 0)
				w.edit(at, w.newContent())
				w.pass(20 * time.Minute)
				if rolls := w.rolls(); !slices.Equal(rolls[1:], []int{1, 1, 1, 1}) {
					t.Errorf("after the source was mended the workloads have rolled %v times", rolls)
				}
			})
		}
	}
}

// condition is what the status says since some moment.
func (a *simulatedApp) condition(kind, reason string, since time.Time) {
	text := since.UTC().Format(time.RFC3339)
	a.conditions = append(a.conditions, map[string]any{"type": kind, "status": "True", "reason": reason, "lastUpdateTime": text, "lastTransitionTime": text})
}

// A new leader halts nothing for a workload that was scaled to nothing, or paused, when
// there was nothing wrong with it.
func TestHalt_ANewLeaderBlamesNobodyForBeingScaledDown(t *testing.T) {
	for sentence, prepare := range map[string]func(w *world, app *simulatedApp, at rollout.SourceRef){
		"before the change": func(w *world, app *simulatedApp, at rollout.SourceRef) {
			w.mute(app, true)
			w.pass(time.Minute)
			w.edit(at, w.newContent())
		},
		"between the change and its turn": func(w *world, app *simulatedApp, at rollout.SourceRef) {
			w.edit(at, w.newContent())
			w.pass(time.Second)
			w.mute(app, true)
			w.pass(15 * time.Minute)
			app.condition("Progressing", "NewReplicaSetAvailable", w.clock.Now()) // of the revision that nothing runs
		},
		"after it was healthy": func(w *world, app *simulatedApp, at rollout.SourceRef) {
			app.condition("Available", "MinimumReplicasAvailable", w.clock.Now())
			w.edit(at, w.newContent())
			w.pass(30 * time.Second)
			app.condition("Progressing", "NewReplicaSetAvailable", w.clock.Now())
			w.pass(5 * time.Minute)
			w.mute(app, true)
		},
		"after it was paused, healthy": func(w *world, app *simulatedApp, at rollout.SourceRef) {
			w.edit(at, w.newContent())
			w.pass(30 * time.Second)
			app.paused, app.muted = true, w.clock.Now()
			w.touch(app)
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, at := fleet(t, 5, func(i int, app *simulatedApp) {
				if i > 1 { // they come later
					app.settings = map[string]string{"configstamp.dev/pause": "2026-07-01T02:00:00Z"}
				}
			})
			prepare(w, w.apps[w.names[0]], at)
			w.pass(10 * time.Minute)
			w.wantRolls(1, 1, 0, 0, 0)
			w.lead()
			w.pass(2 * time.Hour)
			w.wantRolls(1, 1, 1, 1, 1)
			w.wantHeard("ChangeHalted", 0)
		})
	}
}

// Of several workloads that have failed each halts the change, whatever becomes of the
// others, and people are told who does.
func TestHalt_EachOfSeveralFailuresHalts(t *testing.T) {
	w := newWorld(t)
	w.limits.Step = 2
	at := w.fill(6)
	w.spoil(at)
	w.pass(5 * time.Minute)
	w.wantRolls(1, 1, 0, 0, 0, 0)
	w.wantHeard("ChangeHalted", 1, "Deployment app-00")
	w.said = nil
	first := w.apps[w.names[0]]
	first.well = w.clock.Now()
	w.touch(first)
	w.pass(5 * time.Minute)
	w.wantRolls(1, 1, 0, 0, 0, 0)
	w.wantHeard("ChangeHalted", 1, "Deployment app-01 has failed with it")
	w.wantHeard("RolloutHalted", 4, "Deployment app-01 has failed with this change")
	w.wantHeard("ChangeResumed", 0)
}

// A new leader that cannot read the failed workload does not take its status for a proof.
func TestHalt_TheFailedWorkloadCannotBeRead(t *testing.T) {
	for _, lasts := range []time.Duration{30 * time.Second, 14 * time.Minute} {
		w := newWorld(t)
		at := w.fill(6)
		w.spoil(at)
		w.pass(4 * time.Minute)
		w.wantRolls(1, 0, 0, 0, 0, 0)
		w.apps[w.names[0]].unreadable = w.clock.Now().Add(lasts)
		w.lead()
		w.pass(time.Hour)
		w.wantRolls(1, 0, 0, 0, 0, 0)
	}
}
