package rollout_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

const settle = 2 * time.Second

var began = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// world is a cluster and its users, at a simulated time.
type world struct {
	t      *testing.T
	seed   uint64
	now    time.Time
	zero   time.Time // from which logs count
	later  agenda
	n      int
	limits rollout.Limits
	driver *driver
	// rolledOut is to how many workloads changes are said to have rolled out.
	rolledOut int

	apps     map[workload.Ref]*app
	order    []workload.Ref // of apps, sorted
	bySource map[rollout.SourceRef][]workload.Ref
	contents map[rollout.SourceRef]*content
	written  map[rollout.SourceRef]time.Time
	all      map[int]*content
	// behind is what the controller's watch has delivered last, of sources that hold something else by
	// now. late is by how much it is late, and due when the last of its messages comes.
	behind map[rollout.SourceRef]version
	late   time.Duration
	due    map[rollout.SourceRef]time.Time

	lag       time.Duration // until the controller of a workload looks at a new generation
	unread    time.Time     // until when no pods can be listed
	forbidden string        // a namespace in which they never can; everywhere
	flaky     bool          // workloads and the API server fail by themselves
	gives     bool          // workloads go back by themselves when they have failed
	mended    bool          // nothing goes wrong any more
	errors    int

	// copyOf is a content as one namespace of a bundle has it; nil: all have the same.
	copyOf func(*content, rollout.SourceRef) *content

	stats
	streaks map[rollout.SourceRef]*streak // nil: nobody looks
	log     *log
	slow    func(workload.Ref) bool // whose look does not begin
}

// version is a content, and when it was written.
type version struct {
	content *content
	written time.Time
}

// received is what a source holds, as the controller's watch has delivered it.
func (w *world) received(at rollout.SourceRef) version {
	if was, late := w.behind[at]; late {
		return was
	}
	return version{w.contents[at], w.written[at]}
}

// stores has a source hold a content, and the watch deliver that when it is due. The webhook reads it at once.
func (w *world) stores(at rollout.SourceRef, c *content, written time.Time) {
	was, leader := w.received(at), w.leaders
	w.contents[at], w.written[at] = c, written
	is := version{c, written}
	deliver := func() {
		if leader != w.leaders {
			return // the new leader has listed it
		}
		was := w.received(at)
		if w.behind[at] = is; w.contents[at] == c && w.written[at].Equal(written) {
			delete(w.behind, at)
		}
		w.driver.edited(at, was.content)
	}
	due := w.now.Add(w.late)
	if w.due[at].After(due) {
		due = w.due[at]
	}
	if !due.After(w.now) {
		w.driver.edited(at, was.content)
		return
	}
	w.behind[at], w.due[at] = was, due
	w.at(due.Sub(w.now), deliver)
}

// everywhere is all namespaces.
const everywhere = "*"

// forbids reports whether the pods of a workload can never be listed.
func (w *world) forbids(a *app) bool {
	return w.forbidden == everywhere || w.forbidden == a.ref.Namespace
}

// newWorld is a cluster without workloads, in which nobody leads yet.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, seed: seed, now: began, zero: began, lag: 200 * time.Millisecond,
		limits: rollout.Limits{Step: 1, Unsettled: rollout.Number(10), UnsettledPerNamespace: 9, Settle: settle, Soak: 10 * time.Second,
			CrashDeadline: 30 * time.Second, RolloutDeadline: 10 * time.Minute},
		apps: map[workload.Ref]*app{}, bySource: map[rollout.SourceRef][]workload.Ref{}, contents: map[rollout.SourceRef]*content{},
		written: map[rollout.SourceRef]time.Time{}, all: map[int]*content{}, behind: map[rollout.SourceRef]version{}, due: map[rollout.SourceRef]time.Time{},
	}
	w.before = map[rollout.SourceRef]int{}
	w.victims, w.forgiven, w.halts = map[int][]victim{}, map[int]int{}, map[rollout.SourceRef]bool{}
	w.returned = map[reason.Reason]int{}
	return w
}

// errorf reports what is wrong, with the seed and the time.
func (w *world) errorf(format string, args ...any) {
	w.t.Helper()
	const most = 5
	if d := w.driver; *printLog && d != nil && w.errors == 0 {
		w.t.Log("\n" + d.planner.Dump(w.now))
	}
	if w.errors++; w.errors <= most {
		w.t.Errorf("seed %d at %s: %s", w.seed, clock(w.now.Sub(w.zero)), fmt.Sprintf(format, args...))
	}
}

// random draws for the n-th event of somebody, so that it does not depend on what
// happens to others.
func (w *world) random(who string, n int) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprint(hash, who, " ", n)
	return rand.New(rand.NewPCG(w.seed, hash.Sum64()))
}

func (w *world) draw(a *app) *rand.Rand {
	a.draws++
	return w.random(a.ref.String(), a.draws)
}

// at plans something.
func (w *world) at(wait time.Duration, do func()) {
	w.n++
	w.later.put(timed{at: w.now.Add(wait), n: w.n, do: do})
}

// content is a new one. All that hold the same number hold the same.
func (w *world) content(bad fate) *content {
	number := len(w.all) + 1
	c := &content{Content: configMap(number, nil), number: number, bad: bad, up: map[fate]time.Duration{flaps: 3 * time.Second, fades: 15 * time.Second}[bad]}
	w.all[number] = c
	return c
}

func configMap(number int, annotations map[string]string) *checksum.Content {
	cm := corev1.ConfigMap{Data: map[string]string{"version": strconv.Itoa(number)}}
	cm.Annotations = annotations
	return checksum.ContentOfConfigMap(&cm)
}

func (w *world) refs() []workload.Ref { return slices.Clone(w.order) }

func (w *world) using(at rollout.SourceRef) []workload.Ref { return slices.Clone(w.bySource[at]) }

// add has a workload run, for weeks already, with what its sources hold.
func (w *world) add(a *app) *app {
	w.put(a)
	a.generation, a.uid = 1, fmt.Sprintf("%s-1", a.ref)
	for _, source := range a.sources {
		at := rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}
		if w.contents[at] == nil {
			w.contents[at] = w.content(fine)
		}
	}
	a.stamp(w.holds)
	if a.broken {
		a.fate = crashes
	}
	return a
}

func (w *world) holds(at rollout.SourceRef) *content { return w.contents[at] }

func (w *world) put(a *app) {
	w.apps[a.ref], a.lag = a, w.lag
	at, _ := slices.BinarySearchFunc(w.order, a.ref, workload.Ref.Compare)
	w.order = slices.Insert(w.order, at, a.ref)
	for _, source := range a.sources {
		at := rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}
		w.bySource[at] = append(w.bySource[at], a.ref)
	}
}

// remove deletes a workload.
func (w *world) remove(a *app) {
	delete(w.apps, a.ref)
	w.order = slices.DeleteFunc(w.order, func(ref workload.Ref) bool { return ref == a.ref })
	for _, source := range a.sources {
		at := rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}
		w.bySource[at] = slices.DeleteFunc(slices.Clone(w.bySource[at]), func(ref workload.Ref) bool { return ref == a.ref })
		if c := a.carried[source]; c != nil && c.bad != fine {
			w.forgiven[c.number]++ // who has failed is gone: another one tries
		}
		if w.declinesNow(a, source) {
			w.forgiven[w.contents[at].number]++ // who has declined it is gone
		}
	}
	w.excuses(a)
	w.say(a.name(), "is deleted")
	w.driver.see(a.ref)
}

// remake makes a deleted workload again, with what is true.
func (w *world) remake(a *app) {
	w.put(a)
	a.uid = fmt.Sprintf("%s-%d", a.ref, a.generation+1)
	a.serving, a.byUs, a.held, a.made, a.history = false, false, a.paused || a.optedOut, w.now, history{}
	a.stamp(w.holds)
	a.oldStamps = nil
	a.level, a.rolls, a.edits = 0, 0, len(w.untrue(a)) // some, if it is outside now
	a.begin(w.now, w.fateOf(a), time.Time{})
	w.say(a.name(), "is made again")
	w.follow(a)
}

// edit gives a source a content.
func (w *world) edit(at rollout.SourceRef, c *content) {
	was := w.contents[at]
	if was == nil || was.number != c.number {
		w.changes++
		if was != nil {
			w.before[at] = was.number
		}
		delete(w.halts, at)
		w.sayEdit(at, was, c)
		for _, ref := range w.bySource[at] {
			a := w.apps[ref]
			a.edits++
			w.frees(a)
		}
		w.returns(c)
		for _, ref := range w.bySource[at] {
			w.rereads(w.apps[ref])
		}
	}
	w.stores(at, c, w.now.Truncate(time.Second))
}

// returns allows a bad content that comes again one more workload if the one that it has reached
// cannot take it, or if that was under another leader, or if the watch delivers it late.
func (w *world) returns(c *content) {
	for _, v := range w.victims[c.number] {
		if w.late > 0 || v.leader < w.leaders || w.apps[v.a.ref] != v.a || !v.a.served() || v.a.held || v.a.paused || !v.a.reports() || v.a.refusals > 0 {
			w.forgiven[c.number]++
			return
		}
	}
}

// rereads has containers that crash start again after a while, and read what their sources hold then,
// whatever their template was stamped with.
func (w *world) rereads(a *app) {
	generation := a.generation
	ill := func() bool {
		return (a.fate == crashes && a.until.IsZero() || a.flaps()) && !a.broken && !a.allergic && a.badness() != fine
	}
	if !ill() {
		return
	}
	after := a.backoff
	if after == 0 {
		after = time.Duration(1+w.draw(a).IntN(40)) * time.Second
	}
	w.at(after, func() {
		isBad := func(source checksum.Source) bool {
			return w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}].bad != fine
		}
		if w.apps[a.ref] != a || a.generation != generation || !ill() || slices.ContainsFunc(a.sources, isBad) {
			return
		}
		w.say(a.name(), "its containers start again, and read what is there")
		a.fate, a.until = crashes, w.now
		w.follow(a)
	})
}

// resume lets a halted change go on.
func (w *world) resume(at rollout.SourceRef) {
	was := w.contents[at]
	next := *was
	next.Content, next.resumed = configMap(was.number, map[string]string{"configstamp.dev/resume": w.now.Format(time.RFC3339)}), true
	w.all[was.number].resumed = true
	delete(w.streaks, at)
	w.say(at.Namespace+" "+at.Source.String(), "configstamp.dev/resume")
	w.stores(at, &next, w.written[at])
}

// see has everybody see how a workload is now, by somebody's edit or its own doing.
func (w *world) see(a *app) {
	if w.apps[a.ref] == a {
		w.driver.see(a.ref)
	}
}

// follow has everybody see how a workload is, and how it goes on.
func (w *world) follow(a *app) {
	w.see(a)
	w.schedule(a)
}

// schedule plans the next change of a status.
func (w *world) schedule(a *app) {
	next := a.nextChange(w.now)
	if next.IsZero() {
		return
	}
	uid, generation := a.uid, a.generation
	w.at(next.Sub(w.now), func() {
		if w.apps[a.ref] == a && a.uid == uid && a.generation == generation {
			w.follow(a)
			if a.promotes > 0 && a.suspended(w.now) {
				w.at(a.promotes, func() { w.promote(a, generation) })
			}
		}
	})
}

func (w *world) promote(a *app, generation int) {
	if w.apps[a.ref] == a && a.generation == generation && a.suspended(w.now) {
		a.promoted = w.now
		w.say(a.name(), "somebody promotes it")
		w.follow(a)
	}
}

func (w *world) abort(a *app) {
	a.aborted, a.harmless = w.now, false
	w.say(a.name(), "somebody aborts it")
	w.follow(a)
}

// lead begins with a new leader.
func (w *world) lead() {
	if w.driver != nil {
		w.say("", "a new leader")
		w.leaders++
		w.forgive()
		clear(w.streaks) // a new leader does not know who has failed with older content
		clear(w.behind)
	}
	w.driver = lead(w)
}

// forgive lets bad contents reach one more workload where a new leader may not find out who has failed: if no
// pods can be listed, or if a source holds again what the workload took before and does not carry now.
func (w *world) forgive() {
	for number, victims := range w.victims {
		unseen := func(v victim) bool {
			return w.forbids(v.a) || slices.ContainsFunc(w.untrue(v.a), func(source checksum.Source) bool {
				return w.contents[rollout.SourceRef{Namespace: v.a.ref.Namespace, Source: source}].number == number
			})
		}
		if slices.ContainsFunc(victims, unseen) {
			w.forgiven[number]++
		}
	}
}

// until lets time pass, event by event, until an end.
func (w *world) until(end time.Time) {
	for {
		for n := 0; ; n++ {
			ref, found := w.driver.queue.get()
			if !found {
				break
			}
			if w.looks++; n > 1000*len(w.apps) {
				w.t.Fatalf("seed %d at %s: the controller is busy for ever at one moment", w.seed, clock(w.now.Sub(w.zero)))
			}
			if w.slow != nil && w.slow(ref) {
				continue
			}
			w.driver.work(ref)
		}
		next := w.driver.queue.wake()
		if len(w.driver.queue.line) > 0 {
			continue
		}
		if len(w.later) > 0 && (next.IsZero() || !w.later[0].at.After(next)) {
			next = w.later[0].at
		}
		if next.IsZero() || next.After(end) {
			w.now = end
			return
		}
		w.now = next
		for len(w.later) > 0 && w.later[0].at.Equal(next) {
			w.later.take().do()
		}
	}
}

func (w *world) pass(d time.Duration) { w.until(w.now.Add(d)) }
