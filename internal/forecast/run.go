package forecast

import (
	"container/heap"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// run drives a plan through a virtual time, as the controller drives its own through the
// real one. It implements rollout.Cluster.
type run struct {
	q       *Question
	plan    *rollout.Plan
	now     time.Time
	all     []*app
	apps    map[workload.Ref]*app
	users   map[rollout.SourceRef][]workload.Ref
	later   agenda
	looks   int                        // that were queued
	due     map[workload.Ref]time.Time // when each is looked at next
	rolled  []*app                     // in the order in which they began
	opener  *app                       // the first of these whose pods are replaced
	steps   map[rollout.SourceRef]*steps
	changes int
	// declined are the edits that an undo of some workload has sent back before: they halt.
	declined []Stay
}

// steps are those of one change: a step begins when all that began before has ended.
type steps struct {
	change, step, under int
	last                time.Time // when somebody began
}

// run begins with the edits, some of which are declined.
func (q *Question) run(concerned []*app, declined []Stay) *run {
	r := &run{
		q: q, now: q.Now, all: concerned, apps: make(map[workload.Ref]*app, len(concerned)), users: map[rollout.SourceRef][]workload.Ref{},
		due: make(map[workload.Ref]time.Time, len(concerned)), steps: map[rollout.SourceRef]*steps{},
	}
	for _, a := range concerned {
		r.apps[a.Ref] = a
		for _, source := range a.review.Untrue {
			at := rollout.SourceRef{Namespace: a.Ref.Namespace, Source: source}
			r.users[at] = append(r.users[at], a.Ref)
		}
	}
	r.plan = rollout.New(q.Limits, r)
	r.plan.Lead(nil, r.now.Add(-20*q.Limits.Settle)) // what was not edited now has settled
	for _, e := range q.Edits {
		r.plan.Edited(e.At, e.Was, e.Is, r.now)
	}
	for _, s := range declined {
		at := rollout.SourceRef{Namespace: s.Workload.Namespace, Source: s.Source}
		r.plan.Followed(s.Workload, &rollout.Facts{Declined: map[checksum.Source]*checksum.Content{s.Source: r.Content(at)}}, r.now)
	}
	for _, a := range concerned {
		r.queue(a.Ref, r.now)
	}
	r.stir()
	return r
}

// Users implements rollout.Cluster, as do the next ones.
func (r *run) Users(at rollout.SourceRef) []workload.Ref { return r.users[at] }

// Content is what a source holds after the edits.
func (r *run) Content(at rollout.SourceRef) *checksum.Content { return r.q.content(at) }

// Written is known of what is edited.
func (r *run) Written(at rollout.SourceRef) time.Time {
	if r.q.edit(at) != nil {
		return r.q.Now
	}
	return time.Time{}
}

// Copies are asked for of changes that nobody saw begin: here all are seen.
func (r *run) Copies(checksum.Source) []rollout.SourceRef { return nil }

// Workloads is how many can roll.
func (r *run) Workloads() int { return r.q.CanRoll }

// first is who rolls first of those whose pods are replaced, and how many do so at that
// time; the zero Ref when nobody does.
func (r *run) first() (ref workload.Ref, together int) {
	r.finish(func() bool { return r.opener != nil && r.now.After(r.opener.began) })
	if r.opener == nil {
		return workload.Ref{}, 0
	}
	for _, a := range r.rolled {
		if a.Status.Waits == "" && a.began.Equal(r.opener.began) {
			together++
		}
	}
	return r.opener.Ref, together
}

// unturned has every workload held by what holds it, without any turn, and tells how many
// of the others roll first.
func (r *run) unturned() (together int) {
	for _, a := range r.all {
		f := &rollout.Facts{Review: a.review, Policy: a.Policy, Status: a.Status}
		if a.first.Reason = f.Barred(); a.first.Reason == checksum.NoReason {
			a.first = f.Held(time.Time{}, r.q.Now)
		}
		if a.first.Reason == checksum.NoReason && slices.ContainsFunc(r.declined, a.haltedBy) {
			a.first.Reason = checksum.Halted
		}
		if a.last = a.first; a.first.Reason == checksum.NoReason && a.Status.Waits == "" {
			together++
		}
	}
	limits := &r.q.Limits
	if limits.Step == 0 {
		return together
	}
	slots := limits.Unsettled.Slots(r.q.CanRoll)
	return min(together, limits.Step, slots, rollout.PerNamespace(slots, limits.UnsettledPerNamespace))
}

// finish lets time pass until nothing is left to do, or it is enough.
func (r *run) finish(enough func() bool) {
	const looks = 20_000 // at each workload: the longest soak has a look each two seconds for ten hours. Nothing may go on for ever
	n := looks * (len(r.all) + 1)
	r.until(func() bool { n--; return n < 0 || enough() })
}

// until lets time pass, look by look, until it is enough.
func (r *run) until(enough func() bool) {
	for !enough() && len(r.later) > 0 {
		next, _ := heap.Pop(&r.later).(look)
		if r.due[next.at] != next.when {
			continue // it was looked at earlier
		}
		delete(r.due, next.at)
		r.now = next.when
		if a := r.apps[next.at]; a != nil {
			r.look(a)
		} else {
			r.turns()
		}
		r.stir()
	}
}

// turns has those looked at whose turn has come.
func (r *run) turns() {
	out := r.plan.Next(r.now)
	for _, ref := range append(out.Roll, out.Held...) {
		r.queue(ref, r.now)
	}
	if !out.At.IsZero() {
		r.queue(workload.Ref{}, out.At)
	}
}

func (r *run) stir() {
	for _, stir := range r.plan.Stirs() {
		r.queue(stir.User, r.now.Add(stir.After))
	}
}

// look does for one workload what is due.
func (r *run) look(a *app) {
	f := r.facts(a)
	if a.began.IsZero() {
		v := r.decide(a, f, r.plan.Looked)
		hold := checksum.Hold{Reason: v.Why, Until: v.Hold.Until}
		if v.Why == checksum.Turn {
			hold = checksum.Hold{}
		}
		if a.last = hold; !a.looked {
			a.looked, a.first = true, hold
		}
		if v.Do == rollout.Roll {
			r.roll(a)
			f = r.facts(a)
		} else if v.Wait > 0 {
			r.queue(a.Ref, r.now.Add(v.Wait))
		}
	}
	v := r.decide(a, f, r.plan.Followed)
	switch _, _, next := a.status(r.q.Now, r.now); {
	case v.Ended != checksum.NoReason:
		a.healthy = r.now
		a.steps.under--
	case !next.IsZero() && a.healthy.IsZero():
		// Nothing can be seen before that, but that it makes progress.
		r.queue(a.Ref, earliest(next, r.now.Add(max(r.q.Limits.RolloutDeadline/2, time.Second))))
	case v.Wait > 0:
		r.queue(a.Ref, r.now.Add(v.Wait))
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// facts are what is known of a workload now.
func (r *run) facts(a *app) *rollout.Facts {
	f := &rollout.Facts{UID: a.Ref.Name, Records: a.records, Sources: a.review.Untrue, Served: true, Review: a.review, Policy: a.Policy, Mark: r.plan.Mark()}
	if f.Status, f.Standstill, _ = a.status(r.q.Now, r.now); !a.began.IsZero() {
		f.Carried = make(map[checksum.Source]*checksum.Content, len(a.review.Untrue))
		for _, source := range a.review.Untrue {
			f.Carried[source] = r.Content(rollout.SourceRef{Namespace: a.Ref.Namespace, Source: source})
		}
	}
	return f
}

// decide gives the plan the facts. Pods and nodes cannot be foreseen: a status alone tells.
func (r *run) decide(a *app, f *rollout.Facts, ask func(workload.Ref, *rollout.Facts, time.Time) rollout.Verdict) rollout.Verdict {
	for {
		v := ask(a.Ref, f, r.now)
		switch v.Do {
		case rollout.ReadPods:
			f.Pods = &rollout.Pods{Access: rollout.Unselected}
		case rollout.ReadNodes:
			f.Nodes = map[string]bool{}
			for _, name := range v.Nodes {
				f.Nodes[name] = true
			}
		case rollout.ReadMuted:
			f.Muted = &workload.Muted{}
		default:
			return v
		}
	}
}

// roll does what the empty patch does.
func (r *run) roll(a *app) {
	a.began, a.steps = r.now, r.stepsOf(a)
	r.plan.Sent(a.Ref, r.now)
	a.records = checksum.Decide(r.q.Ring, checksum.Admission{
		Namespace: a.Ref.Namespace, Asker: checksum.Roller, Policy: a.Policy, Selections: a.selections,
		Held: a.records, Sent: a.records, Content: r.q.of(a.Workload), Fresh: true,
	}).Records
	r.plan.Answered(a.Ref, r.facts(a), r.now)
	if r.rolled = append(r.rolled, a); r.opener == nil && a.Status.Waits == "" {
		r.opener = a
	}
	s := a.steps
	if s.step == 0 || s.under == 0 && r.now.After(s.last) {
		s.step++
	}
	s.last, a.step = r.now, s.step
	if r.plan.Off() { // nothing is followed
		a.healthy = r.now.Add(a.estimate())
	} else {
		s.under++
	}
}

// stepsOf are the steps in which a workload rolls: those of the first change in which its
// sources were, and all that were in that with them.
func (r *run) stepsOf(a *app) *steps {
	number := uint64(0)
	for _, source := range a.review.Untrue {
		at := rollout.SourceRef{Namespace: a.Ref.Namespace, Source: source}
		if known := r.steps[at]; known != nil {
			return known
		}
		if of := r.plan.ChangeOf(at); of > 0 && (number == 0 || of < number) {
			number = of
		}
	}
	s := &steps{change: r.changes + 1}
	r.changes++
	for at := range r.users {
		if r.plan.ChangeOf(at) == number && r.steps[at] == nil {
			r.steps[at] = s
		}
	}
	return s
}

// stays are the workloads that something holds for good, and, at the end, those whose turn
// was not foreseen.
func (r *run) stays(ended bool) (stays []Stay) {
	for _, a := range r.all {
		if !a.began.IsZero() || !ended && !forGood(a.last) {
			continue
		}
		why := a.last.Reason
		if why == checksum.NoReason {
			why = checksum.Turn
		}
		for _, source := range a.rollsFor {
			stays = append(stays, Stay{Workload: a.Ref, Source: source, Why: why, Finding: a.finding(), Would: true})
		}
	}
	return stays
}

// queue has a workload looked at, unless that is to be sooner.
func (r *run) queue(at workload.Ref, when time.Time) {
	if known, queued := r.due[at]; queued && !when.Before(known) {
		return
	}
	r.due[at] = when
	r.looks++
	heap.Push(&r.later, look{when, at, r.looks})
}
