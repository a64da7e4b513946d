package rollout_test

import (
	"reflect"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// cycleDriver drives a Planner.
type cycleDriver struct {
	watched
	planner *rollout.Planner
	sent    map[workload.Ref]checksum.Records // what was on record when a patch was sent
	queue   *queue
}

func leadCycles(w *world) *cycleDriver {
	d := &cycleDriver{watched: watched{w: w, known: map[workload.Ref]*seen{}}, sent: map[workload.Ref]checksum.Records{}, queue: newQueue(w)}
	d.planner = rollout.NewPlanner(w.limits, lookup{w})
	refs := w.refs()
	d.planner.Lead(refs, w.now)
	for _, ref := range refs {
		d.take(w.apps[ref])
		d.queue.add(ref)
	}
	return d
}

func (d *cycleDriver) items() *queue { return d.queue }

func (d *cycleDriver) follows(ref workload.Ref) bool { return d.planner.Follows(ref) }

func (d *cycleDriver) granted() []workload.Ref { return d.planner.Granted() }

func (d *cycleDriver) counts() rollout.Counts { return d.planner.Counts() }

func (d *cycleDriver) podLists() int { return d.lists }

func (d *cycleDriver) value() reflect.Value { return reflect.ValueOf(d.planner).Elem() }

func (d *cycleDriver) edited(at rollout.SourceRef, was *content) {
	d.planner.Edited(at, was.plain(), d.w.contents[at].plain(), d.w.now)
	for _, ref := range d.w.using(at) {
		d.queue.add(ref)
	}
	d.queue.add(workload.Ref{})
}

func (d *cycleDriver) see(ref workload.Ref) {
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
func (d *cycleDriver) work(ref workload.Ref) {
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
func (d *cycleDriver) look(ref workload.Ref) (v rollout.Verdict, err error) {
	a := d.w.apps[ref]
	if a == nil || d.known[ref] == nil {
		delete(d.known, ref)
		delete(d.sent, ref)
		d.planner.Forget(ref, d.w.now)
		return v, nil
	}
	if d.planner.Uncertain(ref) {
		d.take(a)
	}
	d.noteRolled(a)
	if v = d.observe(a); v.Retry {
		return v, errAgain
	}
	switch {
	case v.Do == rollout.Roll:
		d.w.waits(a, checksum.NoReason, false)
		return rollout.Verdict{}, d.roll(a)
	case d.known[ref].served && len(d.untrue(a, d.known[ref])) > 0:
		d.w.waits(a, v.Why, v.Settles)
	}
	return v, nil
}

// observe tells the planner how a workload is.
func (d *cycleDriver) observe(a *app) (v rollout.Verdict) {
	f := d.facts(a)
	for need := d.planner.Needs(a.ref); ; need = v.Needs() {
		d.read(a, f, need)
		if v = d.planner.Look(a.ref, f, d.w.now); v.Do == rollout.Nothing || v.Do == rollout.Roll {
			v.Retry = v.Retry || f.Pods != nil && f.Pods.Access == rollout.Unread
			return v
		}
	}
}

func (d *cycleDriver) facts(a *app) *rollout.Facts {
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
func (d *cycleDriver) read(a *app, f *rollout.Facts, need rollout.Needs) {
	if need.Pods {
		f.Pods = d.podsOf(a)
	}
	if need.Muted {
		muted := a.mutedFacts()
		f.Muted = &muted
	}
	for _, name := range need.Nodes {
		if f.Nodes == nil {
			f.Nodes = map[string]bool{}
		}
		f.Nodes[name] = true
	}
}

// roll has a workload patched, and tells the planner what came of it.
func (d *cycleDriver) roll(a *app) error {
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

// noteRolled notes the roll of a patch, when a workload first shows it.
func (d *cycleDriver) noteRolled(a *app) {
	if was, sent := d.sent[a.ref]; sent && rollout.RolledBetween(was, d.known[a.ref].records) {
		delete(d.sent, a.ref)
		d.planner.Rolled(a.ref, a.uid, a.sources, d.w.now)
	}
}

// cycle does what the orders say.
func (d *cycleDriver) cycle() {
	d.planner.Watched(func(ref workload.Ref, f *rollout.Facts) {
		if s := d.known[ref]; s != nil {
			f.Status, f.Standstill = s.status, s.Standstill
		}
	})
	out := d.planner.Cycle(d.w.now)
	if err := d.planner.Check(); err != nil {
		d.w.errorf("%v", err)
	}
	for _, ref := range append(out.Roll, out.Held...) {
		d.queue.add(ref)
	}
	if !out.At.IsZero() {
		d.queue.addAfter(workload.Ref{}, out.At.Sub(d.w.now))
	}
	for _, e := range out.Ended {
		if a := d.w.apps[e.Workload]; a != nil {
			d.w.ended(a, e.How, e.Why)
		}
	}
	d.w.told(&out)
}
