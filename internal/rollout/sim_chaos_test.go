package rollout_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// change has somebody edit a source, or two at once, or a replicated one everywhere;
// well or badly. What is bad is mended, put back or let go on later.
func (w *world) change(n int) {
	draw := w.random("change", n)
	places := w.places()
	at := places[draw.IntN(len(places))]
	bad := fine
	if draw.IntN(4) == 0 {
		bad = []fate{crashes, waits, flaps, fades}[draw.IntN(4)]
	}
	if at.Source == source("trust") {
		w.replicate(n, bad)
		return
	}
	w.write(n, at, w.drawn(n, bad, w.soakOf(at)))
	if draw.IntN(4) == 0 {
		next := places[draw.IntN(len(places))]
		if next.Namespace == at.Namespace && next != at && next.Source != source("trust") {
			w.write(n, next, w.content(fine))
		}
	}
}

// drawn is a new content. One that fades does so after any time; if that is longer than one may
// have to stay well, it may reach all.
func (w *world) drawn(n int, bad fate, soak time.Duration) *content {
	c, draw := w.content(bad), w.random("fades", n)
	if bad == fades {
		if c.up = time.Duration(1+draw.Int64N(int64(soak/time.Second)-1)) * time.Second; draw.IntN(4) == 0 {
			c.up, c.resumed = soak+time.Duration(draw.IntN(600))*time.Second, true
		}
	}
	return c
}

// soakOf is for how long the first of those that use a source has to stay well at least.
func (w *world) soakOf(at rollout.SourceRef) time.Duration {
	concerned := 0
	for _, ref := range w.bySource[at] {
		if a := w.apps[ref]; a.served() && a.reports() && !a.paused {
			concerned++
		}
	}
	if concerned < 5 { // some may be gone soon
		return w.limits.Soak
	}
	return max(w.limits.Soak, w.limits.FirstSoak)
}

// places are the sources that somebody uses, sorted.
func (w *world) places() []rollout.SourceRef {
	all := make([]rollout.SourceRef, 0, len(w.bySource))
	for at, refs := range w.bySource {
		if len(refs) > 0 {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, rollout.SourceRef.Compare)
	return all
}

// write edits a source, and has somebody do something about it if that is bad.
func (w *world) write(n int, at rollout.SourceRef, c *content) {
	was, draw := w.contents[at], w.random("mend "+at.Source.Name+at.Namespace, n)
	w.edit(at, c)
	if c.bad == fine {
		return
	}
	w.at(time.Duration(draw.IntN(2400))*time.Second, func() {
		switch is := w.contents[at]; {
		case is != c: // somebody was first
		case draw.IntN(5) == 0:
			w.resume(at)
		case draw.IntN(2) == 0 || was.bad != fine:
			w.edit(at, w.content(fine))
		default:
			w.edit(at, was)
			w.restores(draw, at, c, was)
		}
	})
}

// restores has a tool put bad content back where people took it away, up to three times.
func (w *world) restores(draw *rand.Rand, at rollout.SourceRef, bad, good *content) {
	every := time.Duration(20+draw.IntN(600)) * time.Second
	for i := range 2 * draw.IntN(4) {
		w.at(time.Duration(1+i)*every, func() {
			switch is := w.contents[at]; {
			case i%2 == 0 && is == good:
				w.edit(at, bad)
			case i%2 == 1 && is == bad:
				w.edit(at, good)
			}
		})
	}
}

// replicate writes a content into all copies of a replicated ConfigMap, within some
// seconds, and later what mends it.
func (w *world) replicate(n int, bad fate) {
	var copies []rollout.SourceRef
	for _, at := range w.places() {
		if at.Source == source("trust") {
			copies = append(copies, at)
		}
	}
	draw, c := w.random("replicate", n), w.drawn(n, bad, w.limits.Soak)
	was := w.contents[copies[0]]
	c.copies = len(copies)
	spread := func(c *content) {
		for _, i := range draw.Perm(len(copies)) {
			at := copies[i]
			w.at(time.Duration(draw.IntN(20))*time.Second, func() { w.edit(at, c) })
		}
	}
	spread(c)
	if bad == fine {
		return
	}
	back := was.bad == fine && draw.IntN(2) == 0
	w.at(time.Duration(60+draw.IntN(6000))*time.Second, func() {
		if w.contents[copies[0]] != c {
			return // somebody was first
		}
		mended := w.content(fine)
		mended.copies = len(copies)
		if back {
			mended = was
		}
		spread(mended)
	})
}

// disturb has something else go wrong, or somebody do something.
func (w *world) disturb(n int) {
	draw := w.random("disturb", n)
	a := w.apps[w.order[draw.IntN(len(w.order))]]
	later := func(do func()) {
		w.at(time.Duration(1+draw.IntN(3600))*time.Second, do)
	}
	switch draw.IntN(11) {
	case 10:
		w.unreadableFor(a, time.Duration(1+draw.IntN(30))*time.Minute)
	case 0, 1:
		w.lead()
	case 2:
		w.unread = w.now.Add(time.Duration(draw.IntN(50)) * time.Second)
	case 3: // made again at once, or much later, or never; rather one that waits
		if i := slices.IndexFunc(w.order, func(ref workload.Ref) bool { return len(w.untrue(w.apps[ref])) > 0 }); i >= 0 {
			a = w.apps[w.order[i]]
		}
		w.remove(a)
		if again := draw.IntN(3); again < 2 {
			w.at([]time.Duration{time.Second, time.Hour}[again], func() { w.remake(a) })
		}
	case 4:
		a.optedOut, a.held = true, true
		w.excuses(a)
		w.see(a)
		later(func() { a.optedOut = false; w.see(a) })
	case 5:
		a.paused, a.held = true, true
		w.excuses(a)
		w.see(a)
		later(func() { a.paused = false; w.see(a) })
	case 6:
		w.mute(a)
		later(func() { w.unmute(a) })
	case 7:
		w.upgradeNodes(n)
	case 9:
		w.abortOne(later)
	case 8: // somebody changes its template
		w.roll(a, w.untrue(a), false)
		w.see(a)
	}
}

// everyday has something happen to a workload, or to all, that is nobody's fault.
func (w *world) everyday(n int) {
	draw := w.random("everyday", n)
	a := w.apps[w.order[draw.IntN(len(w.order))]]
	if a.ref.Kind != deploymentKind && a.ref.Kind != statefulSetKind || a.driven || !a.muted.IsZero() {
		return
	}
	switch draw.IntN(9) {
	case 5:
		w.autoscale(a, time.Duration(20+draw.IntN(130))*time.Second)
	case 6:
		w.flap(a, time.Duration(15+draw.IntN(220))*time.Second)
	case 7:
		w.holdMost(a.ref.Namespace, time.Duration(1+draw.IntN(120))*time.Minute)
	case 8:
		if draw.IntN(4) == 0 {
			w.allAway(time.Duration(1+draw.IntN(60)) * time.Minute)
		}
	case 0:
		w.evict(a, time.Duration(5+draw.IntN(100))*time.Second)
	case 1:
		w.crashOnce(a)
	case 2:
		w.scale(a, 2+draw.IntN(5))
	case 3: // somebody rolls another image
		w.roll(a, w.untrue(a), false)
		w.see(a)
	case 4: // a zone goes, and comes back; but not while all are away
		for _, ref := range w.order {
			if a := w.apps[ref]; a.ref.Kind == deploymentKind && !a.away && a.lacks == 0 && a.replicas > 1 && w.random("zone "+ref.String(), n).IntN(3) == 0 {
				w.lose(a, 1)
				w.at(time.Duration(draw.IntN(3600))*time.Second, func() {
					if !a.away {
						w.lose(a, 0)
					}
				})
			}
		}
	}
}

// isLate has the watch of sources be late for a while.
func (w *world) isLate(n int) {
	draw := w.random("is late", n)
	w.late = time.Duration(1+draw.IntN(20000)) * time.Millisecond
	w.at(time.Duration(1+draw.IntN(20))*time.Minute, func() { w.late = 0 })
}

// unreadableFor has the API server answer each PATCH and GET of a workload with an error for a while.
func (w *world) unreadableFor(a *app, lasts time.Duration) {
	a.unreadable, a.held = w.now.Add(lasts), true
	w.excuses(a)
	w.at(lasts, func() {
		a.unreadable = time.Time{}
		w.see(a)
	})
}

// autoscale has an autoscaler change how many replicas a workload has, for an hour. New ones take some
// seconds until they are available.
func (w *world) autoscale(a *app, every time.Duration) {
	few := a.replicas
	for step := range int(time.Hour / every) {
		w.at(time.Duration(step)*every, func() {
			if w.apps[a.ref] != a || !a.muted.IsZero() || a.away || w.mended {
				return
			}
			if step%2 == 0 {
				a.disturbed, a.grown = w.now.Add(8*time.Second), w.now
			}
			w.scale(a, few+1-step%2)
		})
	}
}

// flap has the pods of a workload be not ready for some seconds, again and again for two hours, and
// nothing restarts.
func (w *world) flap(a *app, every time.Duration) {
	a.unsteady, a.harmless = true, false
	for step := range int(2 * time.Hour / every) {
		w.at(time.Duration(step)*every, func() {
			if w.apps[a.ref] == a && a.muted.IsZero() && !w.mended {
				a.disturbed = w.now.Add(5 * time.Second)
				w.follow(a)
			}
		})
	}
	w.at(2*time.Hour, func() { a.unsteady = false })
}

// holdMost has somebody pause most workloads of a namespace for a while.
func (w *world) holdMost(namespace string, lasts time.Duration) {
	for _, ref := range w.refs() {
		a := w.apps[ref]
		if ref.Namespace != namespace || a.paused || w.random("hold "+ref.String(), w.n).IntN(5) == 0 {
			continue
		}
		a.paused, a.held = true, true
		w.excuses(a)
		w.see(a)
		w.at(lasts, func() { a.paused = false; w.see(a) })
	}
}

// allAway has the nodes of all be away for a while: each pod waits for one.
func (w *world) allAway(lasts time.Duration) {
	for _, ref := range w.refs() {
		a := w.apps[ref]
		if a.ref.Kind != deploymentKind || a.away || !a.muted.IsZero() {
			continue
		}
		lacked := a.lacks
		a.away, a.harmless = true, false
		w.lose(a, a.replicas)
		w.at(lasts, func() { a.away = false; w.lose(a, lacked) })
	}
}

// abortOne has somebody abort a canary that is paused, and retry it later.
func (w *world) abortOne(later func(func())) {
	i := slices.IndexFunc(w.order, func(ref workload.Ref) bool { return w.apps[ref].suspended(w.now) })
	if i < 0 {
		return
	}
	a := w.apps[w.order[i]]
	generation := a.generation
	w.abort(a)
	later(func() {
		if w.apps[a.ref] == a && a.generation == generation && !a.aborted.IsZero() {
			a.aborted, a.promoted = time.Time{}, w.now
			w.say(a.name(), "somebody retries it")
			w.follow(a)
		}
	})
}

// mute has somebody scale a workload to nothing.
func (w *world) mute(a *app) {
	if !a.muted.IsZero() || !a.counts() {
		return
	}
	if since, well := a.wellSince(w.now); well {
		a.mutedWell = since
	} else {
		a.mutedWell = time.Time{}
	}
	if !a.failed { // nobody can know any more that it would
		for _, c := range a.carried {
			w.forgiven[c.number]++
		}
	}
	w.excuses(a)
	a.muted, a.harmless = w.now, false // a new leader may not know how it was
	a.generation++
	w.say(a.name(), "somebody scales it to nothing")
	w.follow(a)
}

// unmute has somebody scale it up again.
func (w *world) unmute(a *app) {
	if a.muted.IsZero() || !a.counts() {
		return
	}
	a.muted, a.level, a.serving, a.byUs, a.oldStamps = time.Time{}, 0, false, false, nil // its pods of before are gone
	a.begin(w.now, w.fateOf(a), time.Time{})
	w.say(a.name(), "somebody scales it up again")
	w.follow(a)
}

// upgradeNodes has many workloads lack a pod for a while.
func (w *world) upgradeNodes(n int) {
	for _, ref := range w.order {
		if draw := w.random("nodes "+ref.String(), n); draw.IntN(2) == 0 {
			w.at(time.Duration(draw.IntN(600))*time.Second, func() {
				if a := w.apps[ref]; a != nil {
					a.disturbed = w.now.Add(time.Duration(20+draw.IntN(100)) * time.Second)
					w.follow(a)
				}
			})
		}
	}
}

// mendAll has people mend all sources, and after two hours all workloads too.
func (w *world) mendAll() {
	for _, at := range w.places() {
		if w.contents[at].bad != fine {
			w.edit(at, w.content(fine))
		}
	}
	w.flaky = false
	w.at(2*time.Hour, func() { // what was planned has come by then
		for _, ref := range w.order {
			if a := w.apps[ref]; a.served() && !a.paused && len(w.untrue(a)) > 0 {
				w.checkTurn(a)
			}
		}
		w.mended = true
		for _, at := range w.places() {
			if w.contents[at].bad != fine {
				w.edit(at, w.content(fine))
			}
		}
		for _, ref := range w.order {
			a := w.apps[ref]
			a.broken, a.hangs, a.allergic, a.paused, a.optedOut, a.refusals, a.lacks = false, false, false, false, false, 0, 0
			a.stuck = time.Time{}
			if a.promotes = 5 * time.Minute; a.suspended(w.now) || !a.aborted.IsZero() {
				a.aborted, a.promoted = time.Time{}, w.now
			}
			if a.fate == waits || a.fate == crashes {
				if bad := a.badness(); bad == fine {
					a.until = w.now.Add(time.Second)
				}
			}
			w.follow(a)
		}
	})
}

// named is a workload of a name and kind.
func (w *world) named(kind *workload.Kind, namespace, name string) *app {
	return w.apps[workload.Ref{Kind: kind, Namespace: namespace, Name: name}]
}
