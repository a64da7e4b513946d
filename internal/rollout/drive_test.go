package rollout_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// driver has workloads roll, as the controller does, for a simulated cluster. There is one for
// each of the two planners. Nothing else in the simulation calls them.
type driver interface {
	// see has the watch of workloads tell how one is, or that it is gone.
	see(workload.Ref)
	// edited has the watch of sources tell of an edit.
	edited(at rollout.SourceRef, was *content)
	// work looks at one workload, or, of the zero Ref, at whose turn it is.
	work(workload.Ref)
	items() *queue
	// follows reports whether a rollout of a workload is followed.
	follows(workload.Ref) bool
	granted() []workload.Ref
	counts() rollout.Counts
	// podLists is how often pods were listed.
	podLists() int
	// value is the planner for those who look into it.
	value() reflect.Value
}

// lead begins with a new leader, who knows nothing but the cluster.
func lead(w *world) driver {
	if w.cycles() {
		return leadCycles(w)
	}
	return leadPlan(w)
}

// cycles reports whether the Planner is driven.
func (w *world) cycles() bool { return strings.HasPrefix(w.t.Name(), "TestCycle") }

// watched is what the watch of workloads has shown.
type watched struct {
	w     *world
	known map[workload.Ref]*seen
	lists int // of pods
}

// planDriver drives a Plan.
type planDriver struct {
	watched
	plan  *rollout.Plan
	sent  map[workload.Ref]checksum.Records // what was on record when a patch was sent
	queue *queue
}

// seen is a workload as the watch has shown it.
type seen struct {
	uid        string
	generation int
	served     bool
	paused     bool
	records    checksum.Records
	carried    map[checksum.Source]*content
	declined   map[checksum.Source][]int
	status     workload.Status
	rollout.Standstill
	best rollout.Extent
}

var errAgain = errors.New("to be tried again")

func leadPlan(w *world) *planDriver {
	d := &planDriver{watched: watched{w: w, known: map[workload.Ref]*seen{}}, sent: map[workload.Ref]checksum.Records{}, queue: newQueue(w)}
	d.plan = rollout.New(w.limits, lookup{w})
	refs := w.refs()
	for _, ref := range refs {
		d.take(w.apps[ref])
	}
	d.plan.Lead(refs, w.now)
	for _, ref := range refs {
		d.queue.add(ref)
	}
	d.requeue()
	return d
}

// lookup is what the plan looks up.
type lookup struct{ w *world }

func (l lookup) Using(at rollout.SourceRef) []workload.Ref { return l.w.using(at) }

func (l lookup) Content(at rollout.SourceRef) *checksum.Content {
	return l.w.contents[at].plain()
}

func (l lookup) Written(at rollout.SourceRef) time.Time { return l.w.written[at] }

// Copies are the sources of one name.
func (l lookup) Copies(of checksum.Source) (copies []rollout.SourceRef) {
	for at, is := range l.w.contents {
		if at.Source == of && is != nil {
			copies = append(copies, at)
		}
	}
	slices.SortFunc(copies, rollout.SourceRef.Compare)
	return copies
}

// Workloads is how many there are.
func (l lookup) Workloads() int { return len(l.w.apps) }

func (c *content) plain() *checksum.Content {
	if c == nil {
		return nil
	}
	return c.Content
}

// requeue queues whom the plan wants looked at.
func (d *planDriver) requeue() {
	for _, requeue := range d.plan.Requeues() {
		d.queue.addAfter(requeue.Workload, requeue.After)
	}
}

// edited has the watch of sources tell of an edit.
func (d *planDriver) edited(at rollout.SourceRef, was *content) {
	refs := d.w.using(at)
	if len(refs) == 0 {
		return
	}
	d.plan.Edited(at, was.plain(), d.w.contents[at].plain(), d.w.now)
	d.requeue()
	for _, ref := range refs {
		d.queue.add(ref)
	}
}

// see has the watch of workloads tell how one is, or that it is gone.
func (d *planDriver) see(ref workload.Ref) {
	a := d.w.apps[ref]
	if a == nil {
		delete(d.known, ref)
		d.queue.add(ref)
		return
	}
	if d.take(a) {
		d.queue.add(ref)
	}
}

// take takes a workload as it is, and reports whether that is news.
func (d *watched) take(a *app) (news bool) {
	now, known := d.w.now, d.known[a.ref]
	s := &seen{uid: a.uid, generation: a.generation, served: a.served(), paused: a.paused, records: a.records(), carried: a.carried, declined: maps.Clone(a.declined), status: a.status(now)}
	d.known[a.ref] = s
	var before rollout.Standstill
	if known != nil && known.uid == s.uid {
		before = known.Standstill
	}
	s.Fills(before, s.status.Available, now)
	same := known != nil && known.uid == s.uid && known.generation == s.generation
	s.Relapsed = same && (known.Relapsed || known.status.Phase == workload.RolledOut && s.status.Phase == workload.Rolling)
	switch {
	case s.status.Phase != workload.Rolling:
		if same {
			s.Since, s.best, s.Calm = known.Since, known.best, known.Calm
			if known.status.Phase == workload.Rolling {
				s.Calm = now
			}
		}
	default:
		s.Since, s.best = now, rollout.NoExtent()
		if same && (known.status.Phase == workload.Rolling || now.Sub(known.Calm) < rollout.CalmAfter) {
			s.Since, s.best = known.Since, known.best
		}
		if s.best.Grows(&s.status) {
			s.Since = now
		}
	}
	return known == nil || !same || s.served != known.served || s.paused != known.paused ||
		s.status.Phase != known.status.Phase || !s.records.Equal(known.records)
}

// untrue are the sources whose content a workload does not carry.
func (d *watched) untrue(a *app, s *seen) (untrue []checksum.Source) {
	for _, source := range a.sources {
		is := d.w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}]
		if its := s.carried[source]; its != nil && is != nil && its.number != is.number && !slices.Contains(s.declined[source], is.number) {
			untrue = append(untrue, source)
		}
	}
	return untrue
}

// work looks at one workload, or at whose turn it is.
func (d *planDriver) work(ref workload.Ref) {
	if ref.Kind == nil {
		d.turns()
		return
	}
	wait, err := d.look(ref)
	d.requeue()
	switch {
	case err != nil:
		d.queue.addRateLimited(ref)
	case wait > 0:
		d.queue.addAfter(ref, wait)
		fallthrough
	default:
		if !d.plan.Again(ref) {
			d.queue.forget(ref)
		}
	}
}

func (d *planDriver) look(ref workload.Ref) (time.Duration, error) {
	s, a := d.known[ref], d.w.apps[ref]
	if s == nil || a == nil {
		delete(d.known, ref)
		delete(d.sent, ref)
		return d.plan.Forget(ref, d.w.now), nil
	}
	if d.plan.Uncertain(ref) {
		d.take(a)
		s = d.known[ref]
		d.plan.Confirmed(ref, s.records, a.sources, d.w.now)
	}
	if !s.served {
		d.plan.Withdraw(ref, d.w.now)
		return d.follow(a, s)
	}
	d.noteRolled(a, s)
	wait, err := d.act(a, s)
	again, followErr := d.follow(a, d.known[ref])
	if again > 0 && (wait == 0 || again < wait) {
		wait = again
	}
	return wait, errors.Join(err, followErr)
}

// act rolls a workload whose turn has come.
func (d *planDriver) act(a *app, s *seen) (time.Duration, error) {
	untrue := d.untrue(a, s)
	if len(untrue) == 0 {
		d.plan.RolledByOthers(a.ref, d.facts(a, s), d.w.now)
		return 0, nil
	}
	f := d.facts(a, s)
	f.Policy.Pause.On = s.paused
	if a.order != nil {
		f.Policy.Order = checksum.Order{Place: *a.order, Given: true}
	}
	f.Review.Untrue = untrue
	v, err := d.decide(a, f, d.plan.Looked)
	if err != nil {
		return 0, err
	}
	if v.Do != rollout.Roll {
		d.w.waits(a, v.Why, v.Settles)
		return v.Wait, nil
	}
	d.w.waits(a, checksum.NoReason, false)
	return 0, d.roll(a, s)
}

func (d *planDriver) roll(a *app, s *seen) error {
	d.sent[a.ref] = s.records
	d.plan.Sent(a.ref, d.w.now)
	switch d.w.patch(a) {
	case refused:
		d.plan.Refused(a.ref, true, rollout.LastRetry, d.w.now)
		return errAgain
	case lost:
		d.plan.Refused(a.ref, false, rollout.LastRetry, d.w.now)
		return errAgain
	case stored:
	}
	was := s.records
	d.take(a)
	s = d.known[a.ref]
	if rollout.RolledBetween(was, s.records) {
		d.plan.Answered(a.ref, d.facts(a, s), d.w.now)
	} else {
		d.plan.Refused(a.ref, true, rollout.LastRetry, d.w.now)
	}
	d.noteRolled(a, s)
	return nil
}

// noteRolled notes the roll of a patch, when a workload first shows it.
func (d *planDriver) noteRolled(a *app, s *seen) {
	if was, sent := d.sent[a.ref]; sent && rollout.RolledBetween(was, s.records) {
		delete(d.sent, a.ref)
		d.plan.Rolled(a.ref, a.uid, a.sources, d.w.now)
	}
}

// follow looks after the rollout of a workload, if it has one.
func (d *planDriver) follow(a *app, s *seen) (time.Duration, error) {
	f := d.facts(a, s)
	if d.plan.Concerned(a.ref) {
		f.Carried = d.carries(a, s)
	}
	v, err := d.decide(a, f, d.plan.Followed)
	if err != nil {
		return 0, err
	}
	d.w.ended(a, v.Ended, v.Failed)
	return v.Wait, nil
}

func (d *planDriver) facts(a *app, s *seen) *rollout.Facts {
	return d.factsAt(a, s, d.plan.Mark())
}

// factsAt are the facts of a workload at some mark.
func (d *watched) factsAt(a *app, s *seen, mark uint64) *rollout.Facts {
	declined := map[checksum.Source]*checksum.Content{}
	for source, its := range s.carried {
		if is := d.w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}]; is != nil && is.number != its.number && slices.Contains(s.declined[source], is.number) {
			declined[source] = is.Content
		}
	}
	f := &rollout.Facts{Declined: declined, UID: s.uid, Records: s.records, Sources: a.sources, Served: s.served, Mark: mark, Status: s.status, Standstill: s.Standstill}
	f.Policy.Soak = a.soak
	return f
}

// carries are the contents of now that a workload carries.
func (d *watched) carries(a *app, s *seen) map[checksum.Source]*checksum.Content {
	carried := map[checksum.Source]*checksum.Content{}
	for source, its := range s.carried {
		if is := d.w.contents[rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}]; is != nil && is.number == its.number {
			carried[source] = is.Content
		}
	}
	return carried
}

// decide gives the plan the facts, and what it wants to be read beside them.
func (d *planDriver) decide(a *app, f *rollout.Facts, look func(workload.Ref, *rollout.Facts, time.Time) rollout.Verdict) (v rollout.Verdict, err error) {
	for {
		switch v = look(a.ref, f, d.w.now); v.Do {
		case rollout.ReadPods:
			f.Pods = d.podsOf(a)
		case rollout.ReadNodes:
			if f.Nodes == nil {
				f.Nodes = map[string]bool{}
			}
			for _, name := range v.Nodes {
				f.Nodes[name] = true
			}
		case rollout.ReadMuted:
			muted := a.mutedFacts()
			f.Muted = &muted
		default:
			if v.Retry {
				err = errAgain
			}
			return v, err
		}
	}
}

// podsOf lists the pods of a workload.
func (d *watched) podsOf(a *app) *rollout.Pods {
	d.lists++
	pods := &rollout.Pods{Selector: "app=" + a.ref.Name}
	switch {
	case !a.counts():
		pods.Access, pods.Selector = rollout.Unselected, ""
	case d.w.now.Before(d.w.unread):
		pods.Access = rollout.Unread
	case d.w.forbids(a):
		pods.Access = rollout.Forbidden
	default:
		pods.All = a.pods(d.w.now)
	}
	return pods
}

// turns wakes those whose turn has come, and tells what has become of changes.
func (d *planDriver) turns() {
	out := d.plan.Next(d.w.now)
	if err := d.plan.Check(d.w.now); err != nil {
		d.w.errorf("%v", err)
	}
	d.requeue()
	for _, ref := range append(out.Roll, out.Held...) {
		d.queue.add(ref)
	}
	if !out.At.IsZero() {
		d.queue.addAfter(workload.Ref{}, out.At.Sub(d.w.now))
	}
	d.w.told(&out)
}

// told is what people are told.
func (w *world) told(out *rollout.Orders) {
	for _, n := range out.Halted {
		w.halted(n.Sources, n.By, n.Why)
	}
	for _, n := range out.Resumed {
		w.resumed(n.Sources, n.By)
	}
	for _, n := range out.Finished {
		w.finished(n.Sources, n.Settled)
		w.rolledOut += n.Settled
	}
}

func (d *planDriver) follows(ref workload.Ref) bool { return d.plan.Follows(ref) }

func (d *planDriver) counts() rollout.Counts { return d.plan.Counts() }

func (d *planDriver) items() *queue { return d.queue }

func (d *planDriver) granted() []workload.Ref { return d.plan.Granted() }

func (d *planDriver) podLists() int { return d.lists }

func (d *planDriver) value() reflect.Value { return reflect.ValueOf(d.plan).Elem() }

// slots is how many may roll at once.
func (w *world) slots() int { return w.limits.Unsettled.Slots(len(w.apps)) }
