package rollout_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

var (
	seeds     = flag.Int("seeds", 200, "how many seeds TestSimulation takes")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
	printLog  = flag.Bool("log", false, "print what happens in TestSimulation")
)

// chaos is for how long things go wrong; then all is mended, and calm gives everybody
// the time to roll.
const (
	chaos = 3 * time.Hour
	calm  = 12 * time.Hour
)

// TestSimulation has a Planner serve clusters in which everything happens that may: see
// world.populate for who is there, world.disturb for what goes wrong, and world.everyday for
// what is nobody's fault. It checks that
//   - in the end all that may roll carries what is true, and nothing is left over;
//   - nothing waits for its turn for longer than world.bound;
//   - nothing rolls more often than its content has changed, or from outside;
//   - no more roll at once than the limits allow;
//   - of one content of a source, one healthy workload a day: also if that content comes again, or
//     the nodes of all are away; of a replicated one two in two namespaces before others try again.
//     What may reach one more is counted in stats.forgiven;
//   - what has replicas, and nothing wrong with it or with what it carries, does not fail.
//
// go test ./internal/rollout -run TestSimulation -seed=17 -seeds=1 repeats a seed.
func TestSimulation(t *testing.T) {
	sum := each(t, *seeds, func(t *testing.T, seed uint64) *world { return simulate(t, seed) })
	t.Logf("%d seeds: %d edits, %d rolls, %d halts, %d new leaders, %d looks; at most %d at once; the longest wait for a turn was %s",
		*seeds, sum.changes, sum.rolls, sum.nHalts, sum.leaders, sum.looks, sum.most, sum.longest)
}

// each plays some seeds, as many at a time as there are cores, and adds up what came of them.
func each(t *testing.T, seeds int, play func(t *testing.T, seed uint64) *world) (sum stats) {
	t.Helper()
	var lock sync.Mutex
	t.Run("seeds", func(t *testing.T) {
		shards := runtime.GOMAXPROCS(0)
		for shard := range shards {
			t.Run(strconv.Itoa(shard), func(t *testing.T) {
				t.Parallel()
				for n := shard; n < seeds; n += shards {
					w := play(t, *firstSeed+uint64(n))
					lock.Lock()
					sum.add(&w.stats)
					lock.Unlock()
				}
			})
		}
	})
	return sum
}

func (s *stats) add(other *stats) {
	s.rolls, s.undos, s.changes, s.leaders = s.rolls+other.rolls, s.undos+other.undos, s.changes+other.changes, s.leaders+other.leaders
	s.looks, s.nHalts = s.looks+other.looks, s.nHalts+other.nHalts
	for how, n := range other.returned {
		if s.returned == nil {
			s.returned = map[reason.Reason]int{}
		}
		s.returned[how] += n
	}
	s.longest, s.most = max(s.longest, other.longest), max(s.most, other.most)
}

func simulate(t *testing.T, seed uint64) *world {
	t.Helper()
	return simulateWith(t, seed, func(*world) {})
}

// simulateWith is simulate with something else that happens.
func simulateWith(t *testing.T, seed uint64, more func(*world)) *world {
	t.Helper()
	w := newWorld(t, seed)
	w.flaky = true
	draw := w.random("cluster", 0)
	w.limits.Unsettled = rollout.Number(3 + draw.IntN(8))
	w.limits.UnsettledPerNamespace = rollout.PerNamespace(w.slots(), 0)
	w.limits.RolloutDeadline = time.Duration(3+draw.IntN(8)) * time.Minute
	if w.random("first soak", 0).IntN(2) == 0 {
		w.limits.FirstSoak = 30 * time.Second
	}
	w.lag = time.Duration(w.random("lag", 0).IntN(3000)) * time.Millisecond
	w.populate(draw)
	if *printLog {
		w.log = &log{}
		w.say(w.forbidden, "pods cannot be listed here")
		for _, ref := range w.order {
			w.say(w.apps[ref].name(), w.apps[ref].sort())
		}
		defer func() { t.Log("\n" + w.log.text.String()) }()
	}
	w.lead()
	w.pass(2 * time.Minute)
	for n := range 10 + draw.IntN(20) {
		w.at(time.Duration(draw.Int64N(int64(chaos))), func() { w.change(n) })
	}
	for n := range 15 {
		w.at(time.Duration(draw.Int64N(int64(chaos))), func() { w.disturb(n) })
	}
	for n := range 4 {
		w.at(time.Duration(w.random("late", n).Int64N(int64(chaos))), func() { w.isLate(n) })
	}
	for n := range 25 {
		w.at(time.Duration(w.random("day", n).Int64N(int64(chaos))), func() { w.everyday(n) })
	}
	more(w)
	w.pass(chaos)
	w.mendAll()
	w.pass(calm)
	w.checkEnd()
	return w
}

// populate has workloads of all sorts run in some namespaces.
func (w *world) populate(draw *rand.Rand) {
	namespaces := 3 + draw.IntN(6)
	for n := range 20 + draw.IntN(41) {
		namespace := "ns-" + strconv.Itoa(draw.IntN(1+draw.IntN(namespaces))) // the first have more
		var names []string
		for range 1 + draw.IntN(2) {
			if name := []string{"one", "two", "three", "trust"}[draw.IntN(4)]; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		a := w.someApp(draw, namespace, fmt.Sprintf("app-%02d", n), names)
		if draw.IntN(5) == 0 {
			order := draw.IntN(3)
			a.order = &order
		}
		a.neverServed = draw.IntN(25) == 0
		w.ordinary(a)
		w.add(a)
	}
	if draw.IntN(4) == 0 {
		w.forbidden = "ns-0"
		if w.random("rights", 0).IntN(3) == 0 {
			w.forbidden = everywhere
		}
	}
	trust := w.content(fine) // replicated everywhere
	for at := range w.contents {
		if at.Source == source("trust") {
			w.contents[at] = trust
		}
	}
	for _, a := range w.apps {
		a.stamp(w.holds)
		a.oldStamps = nil
	}
}

func (w *world) someApp(draw *rand.Rand, namespace, name string, sources []string) *app {
	a := deployment(namespace, name, sources...)
	a.replicas, a.pace = 2+draw.IntN(4), time.Duration(1+draw.IntN(20))*time.Second
	switch draw.IntN(20) {
	case 0:
		a.replicas = 1
	case 1:
		a.recreate = true
	case 2:
		a.ref.Kind, a.deadline = statefulSetKind, 0
	case 3:
		a = daemonSet(namespace, name, 3+draw.IntN(20), sources...)
	case 4:
		a.broken = true
	case 5:
		a.muted = w.now.Add(-time.Hour)
	case 6:
		a.deadline = 24 * time.Hour
	case 7:
		a.deadline, a.hangs = 24*time.Hour, draw.IntN(2) == 0
	case 8:
		a = knative(namespace, name, sources...)
		a.hangs = draw.IntN(2) == 0
	case 9:
		a = silent(namespace, name, 10*time.Second, sources...)
	case 10:
		a = silent(namespace, name, 0, sources...)
	case 11, 12:
		a = canary(namespace, name, sources...)
		a.promotes = time.Duration(1+draw.IntN(90)) * time.Minute
	case 13:
		w.generates(a, 0)
	case 14:
		w.driveAt(draw, a)
	case 15:
		a.allergic = draw.IntN(3) == 0
	}
	return a
}

// ordinary makes a workload one of those that are not quite as they should be, or slow, and
// nothing is wrong with that.
func (w *world) ordinary(a *app) {
	draw := w.random("ordinary "+a.ref.String(), 0)
	if a.ref.Kind != deploymentKind && a.ref.Kind != statefulSetKind || a.driven || a.replicas < 2 {
		return
	}
	switch draw.IntN(12) {
	case 0:
		a.lacks = 1
	case 1:
		a.stumbles = time.Duration(1+draw.IntN(25)) * time.Second
	case 2:
		a.recreate, a.ends = true, time.Duration(draw.IntN(120))*time.Second
	case 3:
		a.minReady = time.Duration(10+draw.IntN(60)) * time.Second
		a.batch, a.pace = a.replicas, a.pace+a.minReady
	}
	if a.ref.Kind == statefulSetKind && !a.recreate {
		a.ordered, a.freed = draw.IntN(2) == 0, time.Duration(1+draw.IntN(60))*time.Minute
	}
}

// generates has something make new generations of a workload all the time.
func (w *world) generates(a *app, after time.Duration) {
	a.generates = true
	w.at(after, func() {
		if w.mended {
			return
		}
		a.disturbed = w.now.Add(time.Minute)
		if w.apps[a.ref] == a {
			a.generation++
			w.see(a)
			w.schedule(a)
		}
		w.generates(a, 30*time.Second)
	})
}

// driveAt has somebody roll a workload for other reasons, for a long time, again and
// again.
func (w *world) driveAt(draw *rand.Rand, a *app) {
	a.replicas, a.pace, a.driven = 20, 4*time.Second, true
	for range 4 {
		w.at(time.Duration(draw.Int64N(int64(chaos))), func() {
			if w.apps[a.ref] == a {
				w.roll(a, nil, false)
				w.see(a)
			}
		})
	}
}

// checkEnd checks what must hold in the end.
func (w *world) checkEnd() {
	w.t.Helper()
	for _, ref := range w.order {
		a := w.apps[ref]
		switch untrue := w.untrue(a); {
		case !a.served():
			if a.byUs && a.neverServed {
				w.errorf("%s is outside, and has rolled", a.name())
			}
		case len(untrue) > 0:
			w.errorf("%s (%s) was forgotten: it does not carry what %v hold, and waits for %q", a.name(), a.sort(), untrue, a.why)
		}
		if w.driver.follows(ref) {
			w.errorf("%s (%s, since %s) is followed for ever", a.name(), a.sort(), clock(a.began.Sub(w.zero)))
		}
	}
	if n := w.driver.counts(); n != (rollout.Counts{}) {
		w.errorf("in the end something is left over: %+v", n)
	}
	for _, left := range w.leftovers() {
		w.errorf("in the end the plan still holds %s", left)
	}
}

// keeps are the maps of a Planner that may hold something of workloads and sources that
// are there, when nothing is to do.
var keeps = []string{"edits", "changes", "ended", "tracks", "warned", "attempts"}

// leftovers are what a Planner holds of workloads that are gone, and what it holds that
// should be empty when nothing is to do.
func (w *world) leftovers() (left []string) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			name, field := v.Type().Field(i).Name, v.Field(i)
			switch field.Kind() {
			case reflect.Struct:
				walk(field)
			case reflect.Map:
				if field.Len() > 0 && !slices.Contains(keeps, name) {
					left = append(left, fmt.Sprintf("%d in %s", field.Len(), name))
				}
				for _, key := range field.MapKeys() {
					if key.Type() == reflect.TypeFor[workload.Ref]() && !w.exists(key.FieldByName("Namespace").String(), key.FieldByName("Name").String()) {
						left = append(left, fmt.Sprintf("in %s what is gone", name))
					}
				}
			default:
			}
		}
	}
	walk(w.driver.value())
	return left
}

func (w *world) exists(namespace, name string) bool {
	return slices.ContainsFunc(w.order, func(ref workload.Ref) bool { return ref.Namespace == namespace && ref.Name == name })
}
