package controller

import (
	"testing"
	"time"
)

// That the workload which has failed cannot tell its health any more, as it is
// scaled to nothing or paused, releases no halt; nor does what it rolls for then.
func TestAHaltOutlastsMuteness(t *testing.T) {
	other := configMap("other")
	for sentence, then := range map[string]struct {
		do    func(w *world, at place, app *simulatedApp)
		rolls []int
	}{
		"and stays so": {func(*world, place, *simulatedApp) {}, []int{1, 0, 0, 0, 0}},
		"another of its sources changes": {func(w *world, _ place, _ *simulatedApp) {
			w.edit(place{"shop", other}, w.newContent())
		}, []int{2, 0, 0, 0, 0}},
		"another of its sources changes twice": {func(w *world, _ place, _ *simulatedApp) {
			w.edit(place{"shop", other}, w.newContent())
			w.pass(time.Minute)
			w.edit(place{"shop", other}, w.newContent())
		}, []int{3, 0, 0, 0, 0}},
		"it comes back, and still fails": {func(w *world, _ place, app *simulatedApp) { w.mute(app, false) }, []int{1, 0, 0, 0, 0}},
		"it comes back, and is well": {func(w *world, at place, app *simulatedApp) {
			delete(w.bad, w.contents[at])
			app.well = w.clock.Now()
			w.mute(app, false)
		}, []int{1, 1, 1, 1, 1}},
		"it is deleted":       {func(w *world, _ place, app *simulatedApp) { w.remove(app.user) }, []int{1, 0, 0, 0}},
		"somebody resumes":    {func(w *world, at place, _ *simulatedApp) { w.resume(at) }, []int{1, 1, 0, 0, 0}},
		"the content is good": {func(w *world, at place, _ *simulatedApp) { w.edit(at, w.newContent()) }, []int{2, 1, 1, 1, 1}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w, at := fleet(t, 5, func(i int, app *simulatedApp) {
				if i == 0 {
					app.sources = append(app.sources, other)
				}
			})
			w.spoil(at)
			w.pass(5 * time.Minute)
			app := w.apps[w.names[0]]
			w.mute(app, true)
			w.pass(20 * time.Minute)
			w.wantRolls(1, 0, 0, 0, 0)
			w.wantHeard("ChangeResumed", 0)
			then.do(w, at, app)
			w.pass(20 * time.Minute)
			w.wantRolls(then.rolls...)
		})
	}
}

// Two sources have rolled together, and one of them is mended while the other workload
// is ill: neither waits for the other for ever.
func TestWhoIsIllKeepsNobodyFromMendingAHalt(t *testing.T) {
	other := configMap("other")
	w, at := fleet(t, 2, func(_ int, app *simulatedApp) { app.sources = append(app.sources, other) })
	w.spoil(at)
	w.edit(place{"shop", other}, w.newContent())
	w.pass(5 * time.Minute)
	w.wantRolls(1, 0)
	ill := w.apps[w.names[1]]
	ill.broken = true
	ill.version++
	w.see(ill.user)
	w.edit(at, w.newContent())
	w.pass(20 * time.Minute)
	w.wantRolls(2, 1)
}

// mute scales a workload to nothing, or back.
func (w *world) mute(app *simulatedApp, mute bool) {
	app.mute = mute
	app.version++
	w.see(app.user)
}
