package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// fate is what becomes of the pods of a revision.
type fate int

const (
	fine    fate = iota
	crashes      // every new pod crashes
	waits        // the new pods cannot be scheduled: they never fail by themselves
	flaps        // they are ready for content.up, and crash then, again and again, for ten seconds
	fades        // so they do for thirty
)

// content is what one version of a source, or of several replicated ones, holds.
type content struct {
	*checksum.Content
	number  int  // the same number is the same content
	bad     fate // fine: it is good
	up      time.Duration
	copies  int  // in how many namespaces it was written at once
	resumed bool // somebody let it go on, knowing that it is bad
}

// app is a simulated workload. Its status and its pods are a function of the time.
type app struct {
	ref     workload.Ref
	uid     string
	sources []checksum.Source

	replicas, batch int           // batch become available together
	pace            time.Duration // and take so long
	recreate        bool          // all old pods go before new ones come
	ends            time.Duration // and take so long
	lacks           int           // of its replicas, which find no node
	ordered         bool          // nothing is rolled while one of its pods is broken (OrderedReady)
	freed           time.Duration // after which time a person deletes such a pod
	stumbles        time.Duration // for how long each new pod crashes first
	minReady        time.Duration // which pace includes
	nodeDied        bool          // what disturbs it is a node that does not answer: no pod is made in its pod's place
	creating        bool          // the containers of one of its pods are being created for ever
	deadline        time.Duration // of its own controller; 0: it has none
	order           *int
	soak            checksum.Soak // its own setting
	interval        time.Duration // its min-interval
	neverServed     bool          // it was never opted in
	optedOut        bool          // somebody has opted it out
	paused          bool          // by its own setting
	broken          bool          // its pods crash whatever they carry, and did before
	allergic        bool          // each new revision crashes, whatever it carries
	hangs           bool          // each new revision waits for ever
	reacts          time.Duration // silent kinds: after which time the status changes; 0: never
	canary          bool          // it stands at a pause after its first pod
	promotes        time.Duration // after which time a person promotes the canary; 0: nobody does

	// The newest revision.
	generation int
	began      time.Time
	made       time.Time // again, after it was deleted; zero: it was not
	fate       fate
	until      time.Time         // when crashing and waiting ends by itself; zero: never
	current    time.Time         // when the revision before became current
	up         time.Duration     // of what flaps
	stuck      time.Time         // until when nothing of it is made; zero: no broken pod was in the way
	jam        map[string]string // the stamps of the pod in the way
	promoted   time.Time
	aborted    time.Time
	drained    time.Time // when its pods were made anew on another node
	restarted  time.Time // when a container of it has restarted by itself
	byUs       bool
	everByUs   bool
	level      int32           // how many were available when it began
	leader     int             // under which leader it began
	harmless   bool            // nothing is wrong with what it carries, or with itself
	failed     bool            // people were told that it has failed
	hadFailed  bool            // it has, and was not healthy since
	open       bool            // it has rolled, and has not shown how it does
	mends      bool            // it had failed, or was open, when its newest revision began
	serving    bool            // pods of an older revision serve
	loses      bool            // the answer to the next patch is lost
	unreadable time.Time       // until when the API server answers each PATCH and GET of it with an error
	backoff    time.Duration   // until a container that crashes starts again; 0: any time
	unsteady   bool            // its pods are not ready now and then, and nothing restarts
	away       bool            // its nodes are
	grown      time.Time       // when it was last scaled up, which makes a new pod
	behind     time.Time       // until when its controller has not looked at its newest generation
	lag        time.Duration   // for how long it does not
	was        workload.Status // what its status says meanwhile
	disturbed  time.Time       // until when it lacks a pod for other reasons
	muted      time.Time       // when somebody scaled it to nothing; zero: it has replicas
	mutedWell  time.Time       // since when it was well then

	history           // what an undo may go back to, and has sent back
	carried           map[checksum.Source]*content
	stamps, oldStamps map[string]string

	rolls, edits, draws, refusals int
	since                         time.Time     // since when nothing but its turn keeps it
	held                          bool          // something else keeps it
	why                           reason.Reason // what the last look has found that it waits for
	driven                        bool          // others roll it now and then, for long
	generates                     bool          // something makes new generations all the time
}

func (a *app) name() string { return a.ref.Namespace + "/" + a.ref.Name }

// sort says what is special about it.
func (a *app) sort() string {
	text := a.ref.Kind.Name
	sorts := map[string]bool{"recreate": a.recreate, "broken": a.broken, "allergic": a.allergic, "hangs": a.hangs, "canary": a.canary, "ordered": a.ordered, "mute": !a.muted.IsZero(), "generates": a.generates, "outside": a.neverServed}
	for _, name := range slices.Sorted(maps.Keys(sorts)) {
		if sorts[name] {
			text += " " + name
		}
	}
	return fmt.Sprintf("%s of %d, deadline %s", text, a.replicas, a.deadline)
}

func (a *app) served() bool { return !a.neverServed && !a.optedOut }

// counts reports whether its kind counts replicas.
func (a *app) counts() bool { return a.ref.Kind.Signs.Counts != workload.NoCounts }

// silent reports whether its kind tells nothing of rollouts.
func (a *app) silent() bool { return !a.counts() && a.ref.Kind.Progress == "" }

// reports reports whether it can tell its health.
func (a *app) reports() bool { return a.muted.IsZero() && !a.silent() }

// ready is how many replicas of the newest revision are available, and since when.
func (a *app) ready(now time.Time) (n int, since time.Time) {
	start := a.starts()
	if a.flaps() {
		up, since := a.upNow(now)
		if !up {
			return 0, since
		}
		if a.counts() {
			return a.replicas - a.lacks, start
		}
		return a.replicas, since // its condition became True then
	}
	if a.fate == crashes || a.fate == waits {
		if a.until.IsZero() || now.Before(a.until) {
			return 0, start
		}
		start = a.until
	}
	most := a.replicas - a.lacks
	total := (most + a.batch - 1) / a.batch
	done := max(0, int(now.Sub(start)/a.pace))
	if a.canary && done >= 1 && !a.began.IsZero() {
		if a.promoted.IsZero() {
			return min(a.batch, most), start.Add(a.pace)
		}
		start = a.promoted.Add(-a.pace)
		done = int(now.Sub(start) / a.pace)
	}
	done = min(done, total)
	return min(done*a.batch, most), start.Add(time.Duration(done) * a.pace)
}

// starts is when the first new pod is made: with recreate, when all old ones have ended; of what
// is ordered, when no broken one is in the way.
func (a *app) starts() time.Time {
	if a.stuck.After(a.began) {
		return a.stuck
	}
	if a.recreate && !a.began.IsZero() {
		return a.began.Add(max(a.ends, a.lag+time.Second))
	}
	return a.began
}

// jammed reports whether a pod that is broken is in the way of its rollout.
func (a *app) jammed(now time.Time) bool { return now.Before(a.stuck) }

// inTheWay is until when a pod of its newest revision is broken; zero: none is.
func (a *app) inTheWay(now time.Time) (until time.Time) {
	const forEver = 1000 * time.Hour
	up, _ := a.upNow(now)
	switch {
	case a.jammed(now):
		return a.stuck
	case a.flaps() && !up, (a.fate == crashes || a.fate == waits) && a.until.IsZero():
		return now.Add(forEver)
	case (a.fate == crashes || a.fate == waits) && now.Before(a.until):
		return a.until
	}
	return time.Time{}
}

// ending reports whether its old pods are yet to go, and no new one is made.
func (a *app) ending(now time.Time) bool { return now.Before(a.starts()) }

// flaps reports whether it is ready, and crashes then, again and again.
func (a *app) flaps() bool { return a.fate == flaps || a.fate == fades }

// flapping is for how long a revision that flaps is up each time, and how often.
func (a *app) flapping() (ready, period time.Duration) {
	if a.fate == fades {
		return a.up, a.up + 30*time.Second
	}
	return a.up, a.up + 10*time.Second
}

// upNow is where a revision that flaps is: up, or crashing.
func (a *app) upNow(now time.Time) (up bool, since time.Time) {
	ready, period := a.flapping()
	age := now.Sub(a.starts())
	if age < 0 {
		return false, a.began
	}
	since = now.Add(-age % period)
	return age%period < ready, since
}

// wellSince is since when it is well, and whether it is.
func (a *app) wellSince(now time.Time) (time.Time, bool) {
	n, since := a.ready(now)
	return since, n == a.replicas && !a.flaps() && a.muted.IsZero()
}

func (a *app) suspended(now time.Time) bool {
	n, _ := a.ready(now)
	return a.canary && !a.began.IsZero() && a.promoted.IsZero() && a.aborted.IsZero() && n > 0 && !a.flaps() && a.muted.IsZero()
}

// status is what the API server holds.
func (a *app) status(now time.Time) workload.Status {
	if now.Before(a.behind) && a.muted.IsZero() {
		return a.was
	}
	perNode := a.ref.Kind.Signs.Counts == workload.CountsNodes
	if !a.muted.IsZero() {
		return workload.Status{Waits: "it has no replicas", PerNode: perNode}
	}
	if a.silent() {
		reacted := 0
		if a.reacts > 0 && now.Sub(a.began) >= a.reacts {
			reacted = 1
		}
		return workload.Status{StatusHash: uint64(2*a.generation - 1 + reacted)}
	}
	n, since := a.ready(now)
	s := workload.Status{PerNode: perNode, MinReady: a.minReady, Wanted: int32(a.replicas), Phase: workload.RolledOut, Current: since}
	updated, old := min(n+a.batch, a.replicas), 0
	switch {
	case a.ending(now):
		updated, s.Old, s.Current = 0, a.jammed(now), a.current // it has made nothing yet
	case n == a.replicas-a.lacks || a.flaps():
		updated = a.replicas
	case !a.recreate:
		s.Old = a.replicas > updated
	}
	if a.serving && !a.recreate {
		old = a.replicas - updated
	}
	if a.jammed(now) {
		old = max(0, old-1)
	}
	switch {
	case !a.aborted.IsZero():
		s.Phase, s.Why, s.FailedAt, s.Missing = workload.Failed, "RolloutAborted", a.aborted, int32(a.replicas-n)
	case a.suspended(now):
		s.Phase, s.Missing = workload.Suspended, int32(a.replicas-n)
	case a.flaps():
		if old = 0; n < a.replicas {
			s.Phase, s.Missing = workload.Rolling, int32(a.replicas-n)
		}
	case n < a.replicas && a.deadline > 0 && now.Sub(since) >= a.deadline && !a.began.IsZero():
		s.Phase, s.Why, s.FailedAt, s.Missing = workload.Failed, "ProgressDeadlineExceeded", since.Add(a.deadline), int32(a.replicas-n)
	case n < a.replicas:
		s.Phase, s.Missing = workload.Rolling, int32(a.replicas-n)
	case now.Before(a.disturbed):
		s.Phase, s.Missing, n = workload.Rolling, 1, n-1
	}
	if a.ref.Kind.Progress == "" {
		s.Current = time.Time{} // nothing tells
	}
	s.Updated, s.Available = int32(updated), int32(n+old)
	s.Gentle, s.Recreates = s.Available >= 2 && !a.recreate, a.recreate
	s.Deadline = a.deadline > 0 && s.Phase != workload.RolledOut
	s.Ordered = a.ordered
	if !a.counts() {
		s.Wanted, s.Updated, s.Available, s.Missing, s.Old, s.Gentle = 0, 0, 0, 0, false, false
	}
	return s
}

// renews has a new generation of the object begin, which its controller sees a moment later.
func (a *app) renews(now time.Time, replicas int) {
	was := a.status(now)
	if a.generation++; a.lag == 0 || !a.counts() || !a.muted.IsZero() {
		return
	}
	was.Behind, was.Phase, was.Why, was.FailedAt = true, workload.Rolling, "", time.Time{}
	was.Wanted = int32(replicas)
	was.Updated, was.Missing, was.Old = 0, was.Wanted, was.Available > 0
	a.was, a.behind = was, now.Add(a.lag)
}

// nextChange is when its status changes next by itself; zero: it does not.
func (a *app) nextChange(now time.Time) (next time.Time) {
	soonest := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	n, since := a.ready(now)
	soonest(a.disturbed)
	soonest(a.until)
	soonest(a.behind)
	switch {
	case !a.muted.IsZero():
	case a.silent():
		if a.reacts > 0 {
			soonest(a.began.Add(a.reacts))
		}
	case a.flaps():
		ready, period := a.flapping()
		if up, from := a.upNow(now); up {
			soonest(from.Add(ready))
		} else {
			soonest(from.Add(period))
		}
	case n < a.replicas && a.aborted.IsZero() && !a.suspended(now):
		soonest(since.Add(a.pace))
		soonest(a.starts())
		if a.deadline > 0 {
			soonest(since.Add(a.deadline))
		}
	}
	return next
}

// pods are a few of its pods: those that count.
func (a *app) pods(now time.Time) (pods []workload.Pod) {
	if !a.muted.IsZero() {
		return nil
	}
	pod := func(name string) workload.Pod {
		return workload.Pod{Name: a.ref.Name + "-" + name, Node: "node-" + a.ref.Name + "-" + name, Stamps: a.stamps, Created: a.began.Truncate(time.Second)}
	}
	n, since := a.ready(now)
	up, from := a.upNow(now)
	if a.flaps() && up {
		p := pod("new")
		p.Ready, p.Started, p.Restarted = true, from.Truncate(time.Second), from.After(a.starts())
		p.Crashed = p.Restarted
		return []workload.Pod{p}
	}
	if a.drained.After(since) {
		since = a.drained
	}
	if n > 0 && !a.flaps() {
		p := pod("ready")
		if a.drained.After(a.began) {
			p.Created = a.drained.Truncate(time.Second)
		}
		p.Ready, p.Started = true, since.Truncate(time.Second)
		if !a.restarted.IsZero() && !now.Before(a.restarted) && a.restarted.After(since) {
			p.Started, p.Restarted, p.Crashed = a.restarted.Truncate(time.Second), true, true
		}
		pods = append(pods, p)
	}
	if n < a.replicas && !a.suspended(now) && !a.ending(now) || now.Before(a.disturbed) {
		p := pod("next")
		if p.Created = since.Truncate(time.Second); a.grown.After(since) && now.Before(a.disturbed) {
			p.Created = a.grown
		}
		if a.fate == waits && n == 0 || (a.lacks > 0 || a.generates) && n == a.replicas-a.lacks {
			p.Node = "" // it waits for one
		}
		if ready := since.Add(a.pace - a.minReady); a.minReady > 0 && !now.Before(ready) && n < a.replicas-a.lacks {
			p.Ready, p.Started = true, ready.Truncate(time.Second)
		}
		if a.fate == crashes && n == 0 && (a.until.IsZero() || now.Before(a.until)) || a.flaps() {
			p.Trouble, p.Restarted, p.Crashed = "container app: CrashLoopBackOff", true, true
		}
		if a.nodeDied && now.Before(a.disturbed) && n == a.replicas {
			p.Deleting, p.Node, p.Ending, p.Grace = true, "dead", a.began, 30*time.Second
		}
		pods = append(pods, p)
	}
	if a.jammed(now) {
		p := pod("jam")
		p.Stamps, p.Created, p.Restarted, p.Trouble = a.jam, a.began.Add(-time.Minute).Truncate(time.Second), true, "container app: CrashLoopBackOff"
		pods = append(pods, p)
	}
	if a.creating {
		pods = append(pods, pod("creating"))
	}
	if n < a.replicas-a.lacks && (!a.recreate || a.ending(now)) && a.oldStamps != nil {
		pods = append(pods, workload.Pod{Name: a.ref.Name + "-old", Node: "node-" + a.ref.Name + "-old", Stamps: a.oldStamps, Ready: a.serving, Deleting: a.recreate, Ending: a.began, Grace: a.ends})
	}
	return pods
}

// mutedFacts is what its managedFields and conditions tell of a time before.
func (a *app) mutedFacts() workload.Muted {
	m := workload.Muted{Since: a.muted.Truncate(time.Second), RolledOut: a.mutedWell, Available: a.mutedWell}
	if a.mutedWell.IsZero() {
		m.RolledOut = m.Since.Add(time.Second) // nothing is left to roll
	}
	return m
}

// begin has a new revision of the template begin.
func (a *app) begin(now time.Time, how fate, until time.Time) {
	a.renews(now, a.replicas)
	if n := len(a.revisions); n > 0 && a.revisions[n-1].made.IsZero() {
		a.revisions[n-1].made = now
	}
	if n, since := a.ready(now); n > 0 && !a.flaps() && a.muted.IsZero() {
		a.serving = !a.recreate && !since.After(now)
	}
	if a.jams(now); !a.ending(now) {
		_, a.current = a.ready(now)
	}
	a.began, a.fate, a.until, a.promoted, a.aborted = now, how, until, time.Time{}, time.Time{}
	a.failed, a.harmless = false, how == fine && !a.jammed(now)
	if c := a.harm(); c != nil {
		a.up = c.up
	}
}

// jams has a broken pod of what is ordered be in the way of the revision that begins, until it
// recovers, or somebody deletes it. It is called after the new stamps were given.
func (a *app) jams(now time.Time) {
	until := a.inTheWay(now)
	switch {
	case !a.ordered || until.IsZero() || a.oldStamps == nil:
		a.stuck, a.jam = time.Time{}, nil
	case !a.jammed(now):
		a.jam, a.stuck = a.oldStamps, until
		if by := now.Add(a.freed); by.Before(until) {
			a.stuck = by
		}
	}
}

// stamp has the template carry some contents.
func (a *app) stamp(contents func(rollout.SourceRef) *content) {
	if !a.served() {
		return
	}
	was := a.carried
	a.oldStamps, a.carried, a.stamps = a.stamps, map[checksum.Source]*content{}, map[string]string{}
	for _, source := range a.sources {
		c := contents(rollout.SourceRef{Namespace: a.ref.Namespace, Source: source})
		if kept := was[source]; c != nil && kept != nil && a.declines(source, c) {
			c = kept
		}
		if c != nil {
			a.carried[source] = c
			a.stamps[checksum.StampKey(source)] = strconv.Itoa(c.number)
		}
	}
	a.remember()
}

func (a *app) records() checksum.Records {
	return checksum.Records{Stamps: maps.Clone(a.stamps), Declined: a.declinedText()}
}

// harm is what it carries that is bad, of several what harms first; nil: nothing is.
func (a *app) harm() (worst *content) {
	for _, source := range a.sources {
		if c := a.carried[source]; c != nil && c.bad != fine && (worst == nil || c.up < worst.up) {
			worst = c
		}
	}
	return worst
}

// badness is what its contents do to its pods.
func (a *app) badness() fate {
	if c := a.harm(); c != nil {
		return c.bad
	}
	return fine
}
