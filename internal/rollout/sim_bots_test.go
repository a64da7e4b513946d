package rollout_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
)

var botSeeds = flag.Int("bot-seeds", 100, "how many seeds TestSimulation_Bots takes")

// TestSimulation_Bots is TestSimulation with bots that write bad content again and again. It checks
// also that of the bad contents that a source holds one after the other, until a workload has proven
// one, one healthy workload is reached.
func TestSimulation_Bots(t *testing.T) {
	sum := each(t, *botSeeds, func(t *testing.T, seed uint64) *world {
		return simulateWith(t, seed, func(w *world) {
			w.streaks = map[rollout.SourceRef]*streak{}
			for n := range 12 {
				draw := w.random("bot", n)
				w.at(time.Duration(draw.Int64N(int64(chaos))), func() { w.bot(n) })
			}
		})
	})
	t.Logf("%d seeds: %d edits, %d rolls, %d halts; the longest wait for a turn was %s", *botSeeds, sum.changes, sum.rolls, sum.nHalts, sum.longest)
}

// bot has a source written badly for a while, and well in the end.
func (w *world) bot(n int) {
	draw := w.random("what a bot writes", n)
	places := slices.DeleteFunc(w.places(), func(at rollout.SourceRef) bool { return at.Source == source("trust") })
	if len(places) == 0 {
		return
	}
	at, every, times := places[draw.IntN(len(places))], time.Duration(3+draw.IntN(90))*time.Second, 3+draw.IntN(20)
	for i := range times {
		w.at(time.Duration(i)*every, func() {
			c := w.content([]fate{crashes, flaps, fades}[draw.IntN(3)])
			if c.bad == fades {
				c.up = w.limits.Soak - time.Second // else it is proven
			}
			w.edit(at, c)
		})
	}
	w.at(time.Duration(times)*every, func() { w.edit(at, w.content(fine)) })
}

// streak is what has happened to a source since a workload has last proven a content of it.
type streak struct {
	reached map[*app]bool // healthy workloads, by bad content
	excused bool          // something has happened for which one more may be reached
}

// extends notes that bad content of a source has reached a healthy workload.
func (w *world) extends(at rollout.SourceRef, a *app) {
	if w.streaks == nil {
		return
	}
	s := w.streaks[at]
	if s == nil {
		s = &streak{reached: map[*app]bool{}}
		w.streaks[at] = s
	}
	s.excused = s.excused || len(w.behind) > 0 // what the watch has not delivered, the planner does not know
	for b := range s.reached {                 // who stands at a pause, or cannot take it for another source, is not waited for
		s.excused = s.excused || b.canary || slices.ContainsFunc(w.untrue(b), func(other checksum.Source) bool {
			return other != at.Source && w.halts[rollout.SourceRef{Namespace: at.Namespace, Source: other}]
		})
	}
	if s.reached[a] = true; len(s.reached) > 1 && !s.excused {
		names := make([]string, 0, len(s.reached))
		for a := range s.reached {
			names = append(names, a.name()+" ("+a.sort()+")")
		}
		slices.Sort(names)
		w.errorf("bad contents of %v, one after the other, have reached %v, want one", at, names)
		s.excused = true
	}
}

// proves ends the streaks of what a workload carries, in all namespaces that have copies of it.
func (w *world) proves(a *app) {
	for source, c := range a.carried {
		for at := range w.streaks {
			if at.Source == source && (at.Namespace == a.ref.Namespace || w.contents[at].number == c.number) {
				delete(w.streaks, at)
			}
		}
	}
}

// excuses notes that something has happened to a workload, so that its place may be taken.
func (w *world) excuses(a *app) {
	for _, source := range a.sources {
		if s := w.streaks[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}]; s != nil {
			s.excused = true
		}
	}
}
