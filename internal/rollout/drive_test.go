package rollout_test

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// driver drives a Planner as the controller does, for a simulated cluster. Nothing else in the
// simulation calls the Planner.
type driver struct {
	watched
	planner *rollout.Planner
	sent    map[workload.Ref]checksum.Records // what was on record when a patch was sent
	queue   *queue
}

// lead begins with a new leader, who knows nothing but the cluster.
func lead(w *world) *driver {
	d := &driver{watched: watched{w: w, known: map[workload.Ref]*seen{}}, sent: map[workload.Ref]checksum.Records{}, queue: newQueue(w)}
	d.planner = rollout.NewPlanner(w.limits, lookup{w})
	refs := w.refs()
	d.planner.Lead(refs, w.now)
	for _, ref := range refs {
		d.take(w.apps[ref])
		d.queue.add(ref)
	}
	return d
}

func (d *driver) follows(ref workload.Ref) bool { return d.planner.Follows(ref) }

func (d *driver) atPause(ref workload.Ref) bool { return d.planner.AtPause(ref) }

func (d *driver) counts() rollout.Counts { return d.planner.Counts() }

// value is the planner for those who look into it.
func (d *driver) value() reflect.Value { return reflect.ValueOf(d.planner).Elem() }

func (d *driver) edited(at rollout.SourceRef, was *content) {
	d.planner.Edited(at, was.plain(), d.w.received(at).content.plain(), d.w.now)
	for _, ref := range d.w.using(at) {
		d.queue.add(ref)
	}
	d.queue.add(workload.Ref{})
}

func (d *driver) see(ref workload.Ref) {
	a := d.w.apps[ref]
	if a == nil {
		delete(d.known, ref)
		d.queue.add(ref)
		return
	}
	if d.take(a) {
		d.queue.add(ref)
	}
	d.planner.Watched(func(watched workload.Ref, _ *rollout.Facts) {
		if watched == ref {
			d.queue.add(workload.Ref{})
		}
	})
}

// work looks at one workload, or does a cycle.
func (d *driver) work(ref workload.Ref) {
	if ref.Kind == nil {
		d.cycle()
		return
	}
	verdict, err := d.look(ref)
	d.queue.add(workload.Ref{})
	switch {
	case err != nil:
		d.queue.addRateLimited(ref)
	case verdict.Wait > 0:
		d.queue.addAfter(ref, verdict.Wait)
		fallthrough
	default:
		if !d.planner.Again(ref) {
			d.queue.forget(ref)
		}
	}
}

// look is observe, decide, act.
func (d *driver) look(ref workload.Ref) (v rollout.Verdict, err error) {
	a := d.w.apps[ref]
	if a == nil || d.known[ref] == nil {
		delete(d.known, ref)
		delete(d.sent, ref)
		d.planner.Forget(ref, d.w.now)
		return v, nil
	}
	if d.w.now.Before(a.unreadable) && d.planner.Uncertain(ref) {
		return v, errAgain
	}
	if d.planner.Uncertain(ref) {
		d.take(a)
	}
	d.noteRolled(a)
	v, unread := d.observe(a)
	if unread {
		return v, errAgain
	}
	switch {
	case v.Return:
		d.giveBack(a)
	case v.Roll:
		d.w.waits(a, reason.NoReason, false)
		return rollout.Verdict{}, d.roll(a)
	case d.known[ref].served && len(d.untrue(a, d.known[ref])) > 0:
		d.w.waits(a, v.Why, v.Settles)
	}
	return v, nil
}

// observe tells the planner how a workload is. unread tells that its pods could not be listed.
func (d *driver) observe(a *app) (v rollout.Verdict, unread bool) {
	f := d.facts(a)
	for need := d.planner.Needs(a.ref); ; need = v.Needs {
		d.read(a, f, need)
		v = d.planner.Look(a.ref, f, d.w.now)
		if unread := f.Pods != nil && f.Pods.Access == rollout.Unread; unread || !v.Needs.Any() {
			return v, unread
		}
	}
}

func (d *driver) facts(a *app) *rollout.Facts {
	s := d.known[a.ref]
	f := d.factsAt(a, s, d.planner.Mark())
	f.Carried = d.carries(a, s)
	if s.served {
		f.Review.Untrue = d.untrue(a, s)
		f.Policy.Pause.On = s.paused
		if a.order != nil {
			f.Policy.Order = checksum.Order{Place: *a.order, Given: true}
		}
	}
	return f
}

// read reads what is needed beside the workload.
func (d *driver) read(a *app, f *rollout.Facts, need rollout.Needs) {
	if need.Pods {
		if f.Pods = d.podsOf(a); need.Selector != nil && *need.Selector == "" {
			f.Pods = &rollout.Pods{Access: rollout.Unselected}
		}
	}
	if need.Muted {
		muted := a.mutedFacts()
		f.Muted = &muted
	}
	if need.LastRoll {
		f.LastRoll = a.lastRoll()
	}
	for _, name := range need.Nodes {
		if f.Nodes == nil {
			f.Nodes = map[string]bool{}
		}
		f.Nodes[name] = true
	}
}

// roll has a workload patched, and tells the planner what came of it.
func (d *driver) roll(a *app) error {
	was := d.known[a.ref].records
	d.sent[a.ref] = was
	d.planner.Sent(a.ref)
	answer := d.w.patch(a)
	if answer != stored {
		d.planner.Refused(a.ref, answer == refused, rollout.LastRetry, d.w.now)
		return errAgain
	}
	d.take(a)
	if rollout.RolledBetween(was, d.known[a.ref].records) {
		d.observe(a)
	} else {
		d.planner.Refused(a.ref, true, rollout.LastRetry, d.w.now)
	}
	d.noteRolled(a)
	return nil
}

// giveBack has a workload go back to its former content, and tells the planner what came of it.
func (d *driver) giveBack(a *app) {
	went, final := d.w.giveBack(a)
	if !went {
		d.planner.NotReturned(a.ref, final, d.w.now)
		return
	}
	d.take(a)
	d.observe(a)
}

// noteRolled notes the roll of a patch, when a workload first shows it.
func (d *driver) noteRolled(a *app) {
	if was, sent := d.sent[a.ref]; sent && rollout.RolledBetween(was, d.known[a.ref].records) {
		delete(d.sent, a.ref)
		d.planner.Rolled(a.ref, a.uid, a.sources, d.w.now)
	}
}

// cycle does what the orders say.
func (d *driver) cycle() {
	d.planner.Watched(func(ref workload.Ref, f *rollout.Facts) {
		if s := d.known[ref]; s != nil {
			f.Status, f.Standstill = s.status, s.Standstill
		}
	})
	out := d.planner.Cycle(d.w.now)
	if err := d.planner.Check(); err != nil {
		d.w.errorf("%v", err)
	}
	for _, ref := range append(out.Roll, out.Look...) {
		d.queue.add(ref)
	}
	if !out.At.IsZero() {
		d.queue.addAfter(workload.Ref{}, out.At.Sub(d.w.now))
	}
	for _, e := range out.Ended {
		if a := d.w.apps[e.Workload]; a != nil {
			d.w.ended(a, e.How, e.Why.String())
			if e.How == reason.RolloutFailed && e.Why.Cause == rollout.Outdated {
				d.w.restartsSoon(a)
			}
		}
	}
	for _, r := range out.Returns {
		d.w.returned[r.How]++
	}
	d.w.told(&out)
}

// watched is what the watch of workloads has shown.
type watched struct {
	w     *world
	known map[workload.Ref]*seen
	lists int // of pods
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

// justBack reports whether a workload had no replica for long, and has some for moments: then it is down.
func (d *driver) justBack(ref workload.Ref) bool {
	if d == nil || d.known[ref] == nil {
		return false
	}
	s := d.known[ref]
	return !s.Empty.IsZero() && (s.status.Available == 0 || d.w.now.Sub(s.Filled) < rollout.CalmAfter)
}

// lookup is what the plan looks up.
type lookup struct{ w *world }

func (l lookup) Using(at rollout.SourceRef) []workload.Ref { return l.w.using(at) }

func (l lookup) Content(at rollout.SourceRef) *checksum.Content {
	return l.w.received(at).content.plain()
}

func (l lookup) Written(at rollout.SourceRef) time.Time { return l.w.received(at).written }

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
		is := d.w.received(rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}).content
		if its := s.carried[source]; its != nil && is != nil && its.number != is.number && !slices.Contains(s.declined[source], is.number) {
			untrue = append(untrue, source)
		}
	}
	return untrue
}

// factsAt are the facts of a workload at some mark.
func (d *watched) factsAt(a *app, s *seen, mark uint64) *rollout.Facts {
	declined := map[checksum.Source]checksum.Fingerprint{}
	for source, its := range s.carried {
		if is := d.w.received(rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}).content; is != nil && is.number != its.number && slices.Contains(s.declined[source], is.number) {
			declined[source] = is.Fingerprint()
		}
	}
	f := &rollout.Facts{Declined: declined, UID: s.uid, Records: s.records, Sources: a.sources, Served: s.served, Mark: mark, Status: s.status, Standstill: s.Standstill}
	if f.Policy.Soak, f.Policy.MinInterval, f.Policy.Return = a.soak, a.interval, d.w.gives; d.w.gives {
		f.Records.Pins = map[string]string{checksum.PinsAnnotation: "some"}
	}
	return f
}

// carries are the contents of now that a workload carries.
func (d *watched) carries(a *app, s *seen) map[checksum.Source]checksum.Fingerprint {
	carried := map[checksum.Source]checksum.Fingerprint{}
	for source, its := range s.carried {
		if is := d.w.received(rollout.SourceRef{Namespace: a.ref.Namespace, Source: source}).content; is != nil && is.number == its.number {
			carried[source] = is.Fingerprint()
		}
	}
	return carried
}

// podsOf lists the pods of a workload.
func (d *watched) podsOf(a *app) *rollout.Pods {
	d.lists++
	pods := &rollout.Pods{Selector: "app=" + a.ref.Name}
	switch {
	case !a.counts():
		pods.Access, pods.Selector = rollout.Unselected, ""
	case d.w.now.Before(d.w.unread):
		pods.Access, pods.Selector = rollout.Unread, "" // which the workload could not be read for
	case d.w.forbids(a):
		pods.Access = rollout.Forbidden
	default:
		pods.All = a.pods(d.w.now)
	}
	return pods
}

// told is what people are told.
func (w *world) told(out *rollout.Orders) {
	for _, n := range out.Halted {
		why := n.Why.String()
		if n.Why.Returned { // the failure is an earlier one
			why = ""
		}
		w.halted([]rollout.SourceRef{n.Source}, n.By, why)
	}
	for _, n := range out.Resumed {
		w.resumed([]rollout.SourceRef{n.Source}, n.By)
	}
	for _, n := range out.Finished {
		w.finished([]rollout.SourceRef{n.Source}, n.Settled)
		w.rolledOut += n.Settled
	}
}

// slots is how many may roll at once.
func (w *world) slots() int { return w.limits.Unsettled.Slots(len(w.apps)) }
