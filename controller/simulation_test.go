package controller

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// simulationSeed repeats a simulation; 0 takes the usual one.
var simulationSeed = flag.Uint64("simulation-seed", 1, "seed of TestSimulation")

const (
	simulatedApps    = 2000
	simulatedChanges = 500
	simulatedTime    = 4 * time.Hour
)

// TestSimulation has the whole controller serve 2,000 workloads through 500 changes,
// of which some are bad until somebody mends them or takes them back, with
// workloads that fail by themselves, that never were well, that cannot report
// health, patches that are refused or whose answers are lost, and new leaders, all
// at a simulated time. What is asked of it stands in world.check and world.rolled.
func TestSimulation(t *testing.T) {
	simulate(t, *simulationSeed).check()
}

func simulate(t *testing.T, seed uint64) *world {
	t.Helper()
	w := newWorld(t)
	w.flaky, w.random = true, rand.New(rand.NewPCG(seed, seed))
	// One namespace has half of all workloads; each of the others is small.
	for i := range simulatedApps {
		namespace := "big"
		if i%2 == 1 {
			namespace = "small-" + strconv.Itoa(i/2%50)
		}
		app := &simulatedApp{ref: workload.Ref{Kind: w.kind, Namespace: namespace, Name: fmt.Sprintf("app-%04d", i)}, broken: i%37 == 5, mute: i%41 == 7}
		for range 1 + w.random.IntN(3) {
			if source := configMap("config-" + strconv.Itoa(w.random.IntN(20))); !slices.Contains(app.sources, source) {
				app.sources = append(app.sources, source)
			}
		}
		w.add(app)
	}
	w.clock.Step(30 * 24 * time.Hour)
	w.lead()
	for range simulatedChanges {
		w.at(time.Duration(w.random.Int64N(int64(simulatedTime))), w.change)
	}
	for range 12 {
		w.at(time.Duration(w.random.Int64N(int64(simulatedTime))), w.lead)
	}
	w.pass(3 * simulatedTime)
	return w
}

// change edits one source, or two at once, well or badly; what is bad is mended or
// taken back later.
func (w *world) change() {
	app := w.apps[w.names[w.random.IntN(len(w.names))]]
	for _, source := range app.sources[:min(len(app.sources), 1+w.random.IntN(2))] {
		at, content := rollout.SourceRef{Namespace: app.ref.Namespace, Source: source}, w.newContent()
		if w.random.IntN(5) == 0 {
			was := w.contents[at]
			w.bad[content] = true
			w.at(time.Duration(w.random.IntN(900))*time.Second, func() {
				if w.contents[at] != content {
					return // somebody was first
				}
				if mended := w.newContent(); w.random.IntN(2) == 0 || w.bad[was] {
					w.edit(at, mended)
				} else {
					w.edit(at, was)
				}
			})
		}
		w.edit(at, content)
	}
}

// check is what must hold in the end.
func (w *world) check() {
	for content, victims := range w.victims {
		if len(victims) > 1 {
			w.t.Errorf("a bad content, edited at %s, has reached %d healthy workloads, want 1: %s", w.edited[content].Format(time.TimeOnly), len(victims), victims)
		}
	}
	rolls := 0
	for _, ref := range w.names {
		app := w.apps[ref]
		rolls += app.rolls
		s := w.controller.index.Get(ref)
		if review, err := w.controller.reviewOf(w.t.Context(), ref, s); err != nil || len(review.Untrue) > 0 {
			w.t.Errorf("%s was forgotten: %v is not what it carries (%v)", ref, review.Untrue, err)
		}
	}
	if n := w.counts(); n != (rollout.Counts{}) {
		w.t.Errorf("in the end something is left over: %+v", n)
	}
	if w.most > w.limits.Unsettled.Slots(0) {
		w.t.Errorf("%d workloads rolled at once, want at most %d", w.most, w.limits.Unsettled.Slots(0))
	}
	if rolls < simulatedChanges || len(w.victims) < simulatedChanges/20 {
		w.t.Errorf("%d rollouts and %d bad contents that reached somebody show nothing", rolls, len(w.victims))
	}
	w.t.Logf("%d rollouts, %d at most under way, %d leaders, %d bad contents reached one healthy workload each",
		rolls, w.most, w.leaders, len(w.victims))
}
