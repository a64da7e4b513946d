package rollout_test

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// answer is what comes of a patch.
type answer int

const (
	stored  answer = iota
	refused        // nothing has happened
	lost           // nobody knows
)

// stats are what a simulation has seen, and what its checks remember.
type stats struct {
	before   map[rollout.SourceRef]int // the number of what a source held before
	victims  map[int][]victim          // the healthy workloads that a bad content has reached, by its number
	forgiven map[int]int               // how many more may be, as some are deleted
	rolls    int
	undos    int
	changes  int
	leaders  int
	looks    int
	nHalts   int
	halts    map[rollout.SourceRef]bool // the sources whose changes are halted
	longest  time.Duration              // that a workload has waited for its turn alone
	most     int                        // rollouts under way at once
	returned map[reason.Reason]int      // what became of workloads that went back
}

type victim struct {
	a      *app
	at     time.Time
	was    int // the number of the content before: copies have the same one
	leader int
}

// fateOf is what becomes of a new revision of a workload.
func (w *world) fateOf(a *app) fate {
	switch {
	case a.broken, a.allergic:
		return crashes
	case a.hangs:
		return waits
	}
	return a.badness()
}

// patch is an empty patch, as the API server and the webhook handle it.
func (w *world) patch(a *app) answer {
	if !a.served() || a.paused {
		w.errorf("%s is outside, or paused, and is patched", a.name())
	}
	if w.flaky && a.refusals == 0 && w.draw(a).IntN(30) == 0 {
		a.refusals = 1 + w.draw(a).IntN(8)
	}
	if a.refusals > 0 {
		a.refusals--
		a.held = true
		w.say(a.name(), "its patch is refused")
		return refused
	}
	answer := stored
	if w.now.Before(a.unreadable) {
		a.held = true
		w.say(a.name(), "the API server answers with an error")
		if untrue := w.untrue(a); w.draw(a).IntN(2) == 0 && len(untrue) > 0 {
			w.roll(a, untrue, true) // it was stored all the same
			for _, c := range a.carried {
				w.forgiven[c.number]++
			}
			w.excuses(a)
		}
		w.at(a.unreadable.Sub(w.now), func() { w.see(a) })
		return lost
	}
	if w.flaky && w.draw(a).IntN(30) == 0 {
		answer = lost
		w.say(a.name(), "the answer to its patch is lost")
		if w.draw(a).IntN(2) == 0 {
			return answer
		}
	}
	if untrue := w.untrue(a); len(untrue) > 0 { // else the webhook changes nothing
		w.checkTurn(a)
		w.roll(a, untrue, true)
	}
	if a.loses {
		a.loses, answer = false, lost
		w.say(a.name(), "the answer to its patch is lost")
	}
	if answer == lost {
		w.at(time.Second, func() { w.see(a) })
	}
	return answer
}

// roll is what happens when the stamps of a workload change: by us, or as somebody
// changes its template.
func (w *world) roll(a *app, untrue []checksum.Source, byUs bool) {
	a.level = a.status(w.now).Available
	serves := (a.level > 0 || a.away) && w.now.Sub(a.made) > 5*time.Minute && !a.flaps() && !a.hadFailed
	if !byUs && a.served() {
		a.declined = nil // it may need the new content
	}
	a.stamp(w.holds)
	if !byUs {
		w.excuses(a) // somebody else has put it on trial
	}
	how, until := w.fateOf(a), time.Time{}
	if draw := w.draw(a); w.flaky && how == fine && draw.IntN(25) == 0 { // it fails for a while by itself
		how = []fate{crashes, waits}[draw.IntN(2)]
		until = w.now.Add(time.Duration(1+draw.IntN(1500)) * time.Second)
	}
	harmless := how == fine
	if harmless && a.stumbles > 0 {
		how, until = crashes, w.now.Add(a.stumbles)
	}
	a.begin(w.now, how, until)
	a.harmless = harmless && !a.generates && !a.jammed(w.now) && !a.unsteady && !a.away && !w.driver.justBack(a.ref)
	a.byUs, a.leader, a.mends, a.open = byUs, w.leaders, a.hadFailed || a.open || a.returned || w.driver != nil && w.driver.follows(a.ref), true
	if a.driven { // by others for long, by us as quickly as others
		a.pace = map[bool]time.Duration{true: 4 * time.Second, false: 30 * time.Second}[byUs]
	}
	w.sayRoll(a, untrue, byUs)
	if byUs {
		w.rolls++
		a.everByUs = true
		if a.rolls++; a.rolls > a.edits {
			w.errorf("%s has rolled %d times for %d edits", a.name(), a.rolls, a.edits)
		}
		w.checkBudget()
		w.checkDeclined(a, untrue)
		if serves && a.reports() {
			w.reaches(a, untrue)
		}
	}
	w.schedule(a)
}

// reaches notes that some contents have reached a healthy workload, and checks that
// bad ones do not reach many.
func (w *world) reaches(a *app, untrue []checksum.Source) {
	for _, source := range untrue {
		c := w.all[a.carried[source].number]
		if c.bad == fine || c.resumed {
			continue
		}
		at := rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}
		w.extends(at, a)
		was := w.before[at]
		w.victims[c.number] = append(w.victims[c.number], victim{a, w.now, was, w.leaders})
		all := w.victimsOf(c, was)
		per := map[string]int{}
		for _, v := range all {
			per[v.a.ref.Namespace]++
		}
		most := 1
		if c.copies > 1 {
			halt := rollout.ForeignHalt
			if w.undos > 0 {
				halt -= time.Minute // a new leader counts an undo from when the content was written
			}
			if most = 2; w.now.Sub(all[0].at) >= halt {
				continue // by now other namespaces try again
			}
		}
		for _, v := range all { // one more tries when the content of one that has failed changes
			if w.contents[rollout.SourceRef{Namespace: v.a.ref.Namespace, Source: source}] != c || v.a != a && w.awaitsCopy(v.a) {
				most++
			}
		}
		if most += w.forgiven[c.number]; len(all) > most || c.copies > 1 && per[a.ref.Namespace] > 1+w.forgiven[c.number] {
			names := make([]string, 0, len(all))
			for _, v := range all {
				names = append(names, v.a.name()+" ("+v.a.sort()+") at "+clock(v.at.Sub(w.zero)))
			}
			w.errorf("a bad content has reached %d healthy workloads, want at most %d: %s", len(all), most, strings.Join(names, ", "))
		}
	}
}

// awaitsCopy reports whether a workload waits for a replicated content. It may stop after failures in
// other namespaces, for an hour; then the workload is left out of changes of its other sources.
func (w *world) awaitsCopy(a *app) bool {
	return slices.ContainsFunc(a.sources, func(source checksum.Source) bool {
		is, carried := w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}], a.carried[source]
		return is != nil && is.copies > 1 && (carried == nil || carried.number != is.number)
	})
}

// victimsOf are the healthy workloads that a bad content has reached within a day, each once: a content may
// come again and again. Copies are told apart by what they held before.
func (w *world) victimsOf(c *content, was int) (all []victim) {
	for _, v := range w.victims[c.number] {
		known := slices.ContainsFunc(all, func(other victim) bool { return other.a == v.a })
		if !known && w.now.Sub(v.at) < 24*time.Hour && (c.copies <= 1 || v.was == was) {
			all = append(all, v)
		}
	}
	return all
}

// underWay reports whether a workload rolls by us, and neither stands still nor has
// failed.
func (w *world) underWay(a *app) bool {
	if a.canary {
		return false // a person may have it go on at any time
	}
	if a.mends || a.failed || w.now.Sub(a.began) > w.limits.RolloutDeadline-time.Second { // some know seconds alone
		return false // who is broken needs no slot, and nobody holds one for longer
	}
	if !a.byUs || !a.reports() || !a.counts() || a.suspended(w.now) || !a.promoted.IsZero() || !a.aborted.IsZero() {
		return false // a canary that a person promotes asks nobody
	}
	if w.forbids(a) && a.leader < w.leaders {
		return false // a new leader cannot know
	}
	age := w.now.Sub(a.began)
	if !a.stuck.IsZero() && age >= w.limits.RolloutDeadline {
		return false // it has lost its slot, and nobody asks whether it may go on
	}
	if n, _ := a.ready(w.now); n == a.replicas-a.lacks && !a.flaps() {
		return false
	}
	if s := a.status(w.now); a.level > 0 && !s.Old && (s.Available >= min(a.level, s.Wanted) || s.Available > 0 && a.leader < w.leaders) {
		return false // it has what it had, or what it has is all that a new leader knows of
	}
	switch a.fate {
	case flaps, fades: // its pods are replaced at once: it gives its slot back while it is up
		return false
	case crashes:
		return age < w.limits.CrashDeadline
	case waits:
		return age < w.limits.RolloutDeadline && (a.deadline == 0 || age < a.deadline)
	case fine:
	}
	return true
}

// checkBudget checks that no more roll at once than may.
func (w *world) checkBudget() {
	n, per, all := 0, map[string]int{}, ""
	for _, ref := range w.order {
		if a := w.apps[ref]; w.underWay(a) {
			n++
			per[ref.Namespace]++
			all += fmt.Sprintf("; %s (%s) since %s", a.name(), a.sort(), clock(a.began.Sub(w.zero)))
		}
	}
	if w.most = max(w.most, n); n > w.slots() {
		w.errorf("%d workloads roll at once, want at most %d%s", n, w.slots(), all)
	}
	for namespace, n := range per {
		if n > w.limits.UnsettledPerNamespace {
			w.errorf("%d workloads of %s roll at once, want at most %d%s", n, namespace, w.limits.UnsettledPerNamespace, all)
		}
	}
}

// frees has a workload wait for nothing but its turn, from now on, unless another of
// its changes is halted.
func (w *world) frees(a *app) {
	a.since = w.now
	a.held = a.paused || a.optedOut || slices.ContainsFunc(a.sources, func(s checksum.Source) bool {
		return w.halts[rollout.SourceRef{Namespace: a.ref.Namespace, Source: s}]
	})
}

// waits is what a look has found.
func (w *world) waits(a *app, why reason.Reason, settles bool) {
	a.why = why
	switch {
	case why == reason.Turn, why == reason.NoReason && !settles:
		switch {
		case !a.held || a.refusals > 0 || a.failed:
		case a.hadFailed: // one that has failed may always be mended: for it alone no halt counts
			a.since, a.held = w.now, a.paused || a.optedOut
		default:
			for _, source := range w.untrue(a) {
				delete(w.halts, rollout.SourceRef{Namespace: a.ref.Namespace, Source: source})
			}
			w.frees(a)
		}
	case why != reason.NoReason:
		if !a.held && why == reason.Halted {
			w.say(a.name(), "waits: its change is halted")
		}
		a.held = true
	}
}

// bound is how long a workload waits for its turn at most, when nothing but turns keeps
// it: its sources have settled, it is opted in, and its change is not halted.
//
//   - Its sources settle within ten times the settling, and its change begins within a
//     minute, though workloads cannot be looked at.
//   - A busy workload is waited for no longer than the rollout deadline.
//   - Each step of its change takes no longer than one rollout that makes no progress
//     for the rollout deadline, and goes on then. As a change of n workloads doubles,
//     it has no more steps than n has binary digits, and two for those that go last.
//   - It waits for slots while the others roll, as many at once as there are slots.
func (w *world) bound() time.Duration {
	n, rollout := len(w.apps)+1, max(w.limits.Soak, 2*w.limits.FirstSoak)+longestRollout
	steps, rounds := bits.Len(uint(n))+2, (n+w.slots()-1)/w.slots()
	return 10*settle + time.Minute + w.limits.RolloutDeadline + time.Duration(steps)*(w.limits.RolloutDeadline+rollout) + time.Duration(rounds)*rollout
}

// longestRollout is how long a rollout of ours progresses in the simulation at most.
const longestRollout = 4 * time.Minute

// checkTurn checks that a workload has not waited for longer than the bound.
func (w *world) checkTurn(a *app) {
	if a.held {
		return
	}
	waited := w.now.Sub(a.since)
	w.longest = max(w.longest, waited)
	if bound := w.bound(); waited > bound {
		w.errorf("%s has waited %s for its turn, want at most %s", a.name(), waited, bound)
	}
}

// ended tells what has become of a rollout.
func (w *world) ended(a *app, how reason.Reason, why string) {
	switch how {
	case reason.Healthy:
		a.open = false
		a.hadFailed = a.hadFailed && len(w.untrue(a)) > 0 // well under a stamp of what it failed with
		for source, c := range a.carried {
			if w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}] == c {
				delete(a.unproven, c.number)
			}
		}
		w.proves(a)
		w.say(a.name(), "is healthy")
	case reason.RolloutFailed:
		a.failed = true
		w.fails(a, why)
		w.say(a.name(), "has failed: "+why)
	case reason.CannotTell:
		a.open = false
		w.say(a.name(), "cannot tell whether it is healthy")
	default:
	}
}

// restartsSoon has a person do later what the advice says: restart its pods. Where nothing counts pods, that
// shows nothing, so the person has good content go on.
func (w *world) restartsSoon(a *app) {
	generation := a.generation
	w.at(time.Duration(1+w.draw(a).IntN(60))*time.Minute, func() {
		if w.apps[a.ref] != a || a.generation != generation || !a.served() || !a.muted.IsZero() {
			return
		}
		w.roll(a, w.untrue(a), false)
		w.see(a)
		for _, source := range a.sources {
			at := rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}
			if !a.counts() && w.contents[at].bad == fine {
				w.resume(at)
			}
		}
	})
}

// fails notes that a workload has failed, and checks that something is wrong with it, or with
// what it carries. Of one that had no replica, its own controller decides, and nobody knows what
// one had that others roll, or who led before. In a namespace whose pods cannot be listed, nobody
// sees that one waits for a node.
func (w *world) fails(a *app, why string) {
	outdated := rollout.Failure{Cause: rollout.Outdated}
	if why != outdated.String() && a.harmless && a.byUs && a.level > 0 && a.leader == w.leaders && !a.hadFailed && !w.forbids(a) {
		w.errorf("%s (%s) has failed, and nothing is wrong with it: %s", a.name(), a.sort(), why)
	}
	a.hadFailed = true
}

func (w *world) halted(sources []rollout.SourceRef, by workload.Ref, why string) {
	w.nHalts++
	if a := w.apps[by]; a != nil && why != "" {
		w.fails(a, why) // of one that a new leader finds, no more than this is told
	}
	for _, at := range sources {
		w.halts[at] = true
		if why == "" && by.Kind != nil {
			why = "an undo has declined it"
		}
		w.say(at.Namespace+" "+at.Source.String(), "ChangeHalted by "+by.Namespace+"/"+by.Name+": "+why)
	}
}

func (w *world) resumed(sources []rollout.SourceRef, by workload.Ref) {
	isResumed := func(at rollout.SourceRef) bool { return w.contents[at] != nil && w.contents[at].resumed }
	if slices.ContainsFunc(sources, isResumed) {
		for _, at := range sources {
			w.all[w.contents[at].number].resumed = true // all that changed together goes on
		}
	}
	for _, at := range sources {
		delete(w.halts, at)
	}
	for _, at := range sources {
		w.say(at.Namespace+" "+at.Source.String(), "ChangeResumed: "+by.Namespace+"/"+by.Name+" does not halt it any more")
		for _, ref := range w.bySource[at] {
			if a := w.apps[ref]; a.held && !a.paused && a.served() && a.refusals == 0 {
				w.frees(a)
			}
		}
	}
}

func (w *world) finished(sources []rollout.SourceRef, settled int) {
	for _, at := range sources {
		w.sayCount(at.Namespace+" "+at.Source.String(), "ChangeRolledOut to", settled)
	}
}

// untrue are the sources of which a workload does not carry what they hold.
func (w *world) untrue(a *app) []checksum.Source {
	return slices.DeleteFunc(slices.Clone(a.sources), func(s checksum.Source) bool {
		is := w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: s}]
		return a.carried[s] == nil || a.carried[s].number == is.number || a.declines(s, is)
	})
}
