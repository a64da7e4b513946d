package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// noHurry is how long to wait before something is tried again that only a person can fix.
const noHurry = 10 * time.Minute

var errMoved = errors.New("another client wrote the workload in the meantime")

// look is one look at one workload: what it finds, and what is remembered of those before.
type look struct {
	*Controller
	ref    workload.Ref
	s      *Workload
	note   *note
	served bool          // it is ours
	mark   uint64        // when all this was found out
	review review        // of one that is ours and can be read; else of its policy alone
	holds  reason.Reason // what keeps the workload from rolling, or from being recorded
	// verdict is the planner's, once decided.
	verdict rollout.Verdict
	decided bool
}

// sync looks at one workload, and does what is due. It returns how long to wait before the next
// look, zero when something else will wake it. After an error the look is tried again with
// backoff, for ever. A workload that the API server does not know is forgotten.
func (c *Controller) sync(ctx context.Context, ref workload.Ref) (wait time.Duration, err error) {
	err = errPanicked // unless it returns
	defer c.permits(func(t *throttle.Throttle) []workload.Ref { return t.Looked(ref, c.options.Clock.Now()) })
	l := &look{Controller: c, ref: ref, s: c.index.Get(ref), note: c.notes.of(ref)}
	defer func() {
		c.notes.end(ref)
		c.waits.Looked(ref, l.holds, err != nil, c.again(ref), c.options.Clock.Now())
		l.reconciled(err)
	}()
	if l.s == nil {
		c.forget(ref)
		return 0, nil
	}
	wait, err = l.all(ctx)
	if apierrors.IsNotFound(err) {
		c.index.Gone(ref, l.s)
		l.s = nil
		c.forget(ref)
		return 0, nil
	}
	return wait, err
}

// forget drops a workload that is gone.
func (c *Controller) forget(ref workload.Ref) {
	c.notes.forget(ref)
	c.told.Forget(waiting.Of(ref))
	c.waits.Older.Forget(ref)
	c.outcomes.put(ref, nil)
	c.plans(func(p *rollout.Planner) { p.Forget(ref, c.options.Clock.Now()) })
}

// all is what a look does: it observes the workload, has the planner decide, reports, and acts.
func (l *look) all(ctx context.Context) (time.Duration, error) {
	if err := l.observe(ctx); err != nil {
		return 0, err
	}
	verdict, err := l.decide(ctx)
	l.verdict, l.decided = verdict, err == nil
	wait, reportErr := l.report(ctx)
	if err != nil {
		err = fmt.Errorf("finding out how it is: %w", err)
	} else {
		wait = sooner(wait, l.reportVerdict(verdict))
	}
	again, actErr := l.act(ctx, verdict)
	if err = errors.Join(err, actErr, reportErr); err == nil && l.atRest() {
		l.settled()
	}
	return sooner(wait, again), err
}

// observe finds out how the workload is now, and what has come of what was asked for before.
func (l *look) observe(ctx context.Context) (err error) {
	if l.asks(l.ref, (*rollout.Planner).Uncertain) { // the watch may not have told of it yet
		if err := l.reread(ctx); err != nil {
			return fmt.Errorf("finding out whether it rolls: %w", err)
		}
	}
	l.planned(func(p *rollout.Planner) { l.mark = p.Mark() })
	if l.served = l.serves(l.ref, l.s); !l.served || l.s.Fault != "" {
		l.review.policy = l.policy(l.ref, l.s)
		return nil
	}
	if l.review, err = l.reviewOf(ctx, l.ref, l.s); err != nil {
		return err
	}
	l.noteRolled(ctx)
	l.noteRecorded(ctx, l.s)
	return nil
}

// reread has the look be at the workload as the API server has it now.
func (l *look) reread(ctx context.Context) error {
	body, err := l.api.get(ctx, l.ref)
	if err != nil {
		return err
	}
	now, err := l.options.read(l.ref.Kind, body)
	if err != nil {
		return err
	}
	if now.UID != l.s.UID {
		return errMoved
	}
	l.index.Renew(l.ref, now)
	l.s = now
	return nil
}

// decide gives the planner the facts, and what it wants to be read beside them.
func (l *look) decide(ctx context.Context) (verdict rollout.Verdict, err error) {
	f := l.facts()
	var need rollout.Needs
	for l.planned(func(p *rollout.Planner) { need = p.Needs(l.ref) }); ; need = verdict.Needs {
		err := l.read(ctx, f, need)
		if err != nil && (f.Pods == nil || f.Pods.Access != rollout.Unread) {
			return rollout.Verdict{}, err
		}
		given := *f // the planner keeps it, and forgets what was read beside the workload with its next cycle
		given.Nodes = maps.Clone(f.Nodes)
		l.plans(func(p *rollout.Planner) { verdict = p.Look(l.ref, &given, l.options.Clock.Now()) })
		switch {
		case err != nil:
			return rollout.Verdict{}, err
		case !verdict.Needs.Any():
			return verdict, nil
		}
	}
}

// facts are what is known of the workload.
func (l *look) facts() *rollout.Facts {
	s := l.s
	f := &rollout.Facts{UID: string(s.UID), Records: s.Records, Sources: s.Sources, Served: l.serves(l.ref, s), Status: s.Status, Nodes: map[string]bool{},
		Standstill: s.Standstill, Mark: l.mark, Review: l.review.Review, Policy: l.review.policy}
	concerned := false
	if l.planned(func(p *rollout.Planner) { concerned = p.Concerned(l.ref, s.Sources) }); concerned {
		contentOf := func(source checksum.Source) *checksum.Content { return l.sources.Content(l.ref.Namespace, source) }
		f.Carried, f.Declined = l.keys.Ring().Carried(l.ref.Namespace, s.References, s.Sources, s.Records, contentOf)
	}
	return f
}

// report tells people what was found. It returns how long to wait until more can be told.
func (l *look) report(ctx context.Context) (wait time.Duration, err error) {
	switch {
	case !l.served: // what it has failed with stays halted, and its rollout is followed
		*l.note = note{}
		l.waits.Older.Forget(l.ref)
		l.told.Forget(waiting.Of(l.ref), reason.PodsUnseen, reason.Retry)
		return 0, nil
	case l.s.Fault != "":
		l.sayOnce(reason.TemplateUnreadable, l.s.Fault)
		return 0, nil
	}
	l.sayUnreadable()
	l.waits.Older.Looked(l.ref, l.review.Older(l.s.Records), l.review.Declined, lookup{l.Controller}.Written, l.options.Clock.Now())
	wait = l.sayGone()
	l.note.missed(l.review.Missing)
	for i := range l.review.ToRecord {
		source := l.review.ToRecord[i].Source
		l.note.came(source, l.sources.Content(l.ref.Namespace, source))
	}
	return wait, l.withdrawn(ctx)
}

// act does what is due: nothing, a recording, a roll, or a return to former content.
func (l *look) act(ctx context.Context, verdict rollout.Verdict) (time.Duration, error) {
	switch {
	case verdict.Return:
		return l.throttled(func() (time.Duration, error) { return l.giveBack(ctx) })
	case verdict.Roll:
		return l.throttled(func() (time.Duration, error) { return l.roll(ctx) })
	case l.review.Records():
		return l.throttled(func() (time.Duration, error) { return l.record(ctx) })
	}
	return 0, nil
}

// atRest reports whether nothing is due any more.
func (l *look) atRest() bool {
	return l.served && l.s.Fault == "" && l.review.rests() && !l.asks(l.ref, (*rollout.Planner).Follows)
}

// settled forgets what people were told. Only that its pods cannot be listed, or lack something
// to start, stays true.
func (l *look) settled() {
	l.note.settle()
	l.told.Forget(waiting.Of(l.ref), reason.PodsUnseen, reason.SourceGone)
}

// sooner is the shorter of two waits. Zero is no wait.
func sooner(wait, other time.Duration) time.Duration {
	if wait == 0 || other == 0 {
		return max(wait, other)
	}
	return min(wait, other)
}
