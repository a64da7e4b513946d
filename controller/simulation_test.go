package controller

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

var (
	simulationSeed  = flag.Uint64("simulation-seed", 1, "the first seed of TestSimulation")
	simulationSeeds = flag.Int("simulation-seeds", 1, "how many seeds TestSimulation takes")
)

const (
	simulatedApps    = 2000
	simulatedChanges = 500
	simulatedTime    = 4 * time.Hour
)

// TestSimulation has the whole controller serve 2,000 workloads through 500 changes,
// of which some are bad until somebody mends them or takes them back, with
// workloads that fail by themselves, that never were well, that cannot report
// health, patches that are refused or whose answers are lost, and new leaders, all
// at a simulated time. The watch of sources is late now and then, bad content comes again, and some
// workloads can neither be read nor patched for a while. What is asked of it stands in world.check and
// world.rolled. With more than one seed each has 300 workloads, and 100 changes.
func TestSimulation(t *testing.T) {
	if *simulationSeeds == 1 {
		simulate(t, *simulationSeed, simulatedApps, simulatedChanges).check(simulatedChanges)
		return
	}
	t.Run("seeds", func(t *testing.T) {
		shards := runtime.GOMAXPROCS(0)
		for shard := range shards {
			t.Run(strconv.Itoa(shard), func(t *testing.T) {
				t.Parallel()
				for n := shard; n < *simulationSeeds && !t.Failed(); n += shards {
					t.Logf("seed %d", *simulationSeed+uint64(n))
					simulate(t, *simulationSeed+uint64(n), 300, 100).check(100)
				}
			})
		}
	})
}

func simulate(t *testing.T, seed uint64, apps, changes int) *world {
	t.Helper()
	w := newWorld(t)
	w.flaky, w.random = true, rand.New(rand.NewPCG(seed, seed))
	// One namespace has half of all workloads; each of the others is small.
	for i := range apps {
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
	for range changes {
		w.at(time.Duration(w.random.Int64N(int64(simulatedTime))), w.change)
	}
	for range 8 {
		w.at(time.Duration(w.random.Int64N(int64(simulatedTime))), func() {
			w.late = time.Duration(w.random.IntN(10_000)) * time.Millisecond
			w.at(time.Duration(w.random.IntN(20))*time.Minute, func() { w.late = 0 })
		})
		w.at(time.Duration(w.random.Int64N(int64(simulatedTime))), func() {
			app := w.apps[w.names[w.random.IntN(len(w.names))]]
			app.unreadable = w.clock.Now().Add(time.Duration(w.random.IntN(30)) * time.Minute)
		})
	}
	for range 12 {
		w.at(time.Duration(w.random.Int64N(int64(simulatedTime))), w.lead)
	}
	w.pass(3 * simulatedTime)
	for range 3 { // what was never well may halt a change, and the next one that was never well may halt it again
		for _, at := range slices.SortedFunc(maps.Keys(w.contents), rollout.SourceRef.Compare) {
			if !w.bad[w.contents[at]] {
				w.resume(at)
			}
		}
		w.pass(simulatedTime)
	}
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
					w.at(time.Duration(20+w.random.IntN(600))*time.Second, func() { w.restore(at, was, content) })
				}
			})
		}
		w.edit(at, content)
	}
}

// restore has a tool put bad content back, such as from Git, until somebody takes it away for good.
func (w *world) restore(at rollout.SourceRef, good, bad *checksum.Content) {
	if w.contents[at] != good {
		return
	}
	for _, v := range w.victims[bad] {
		// A new leader does not know which workload took it, nor does one whose watch is late. A workload
		// that waits for another source, whose change may be halted, is left out.
		review, err := w.controller.reviewOf(w.t.Context(), v.ref, w.controller.index.Get(v.ref))
		if w.late > 0 || v.leader < w.leaders || err != nil || len(review.Untrue) > 0 || w.clock.Now().Before(w.apps[v.ref].unreadable) {
			w.forgiven[bad]++
		}
	}
	w.edit(at, bad)
	w.at(time.Duration(20+w.random.IntN(600))*time.Second, func() {
		if w.contents[at] == bad {
			w.edit(at, good)
		}
	})
}

// check is what must hold in the end.
func (w *world) check(changes int) {
	for content, victims := range w.victims {
		if reached := len(victims); reached > 1+w.forgiven[content] {
			w.t.Errorf("a bad content, edited last at %s, has reached %d healthy workloads, want %d: %+v", w.edited[content].Format(time.TimeOnly), reached, 1+w.forgiven[content], slices.Collect(maps.Values(victims)))
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
	if rolls < changes || len(w.victims) < changes/20 {
		w.t.Errorf("%d rollouts and %d bad contents that reached somebody show nothing", rolls, len(w.victims))
	}
	w.t.Logf("%d rollouts, %d at most under way, %d leaders, %d bad contents reached one healthy workload each",
		rolls, w.most, w.leaders, len(w.victims))
}
