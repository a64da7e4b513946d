package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// noHurry is how long to wait before something is tried again that only a person can fix.
const noHurry = 10 * time.Minute

var errMoved = errors.New("somebody else wrote the workload meanwhile")

// sync does what is due for one workload. One that the API server does not know
// is forgotten.
func (c *Controller) sync(ctx context.Context, ref workload.Ref) (wait time.Duration, err error) {
	err = errPanicked // unless it returns
	defer c.permits(func(t *throttle.Throttle) []workload.Ref { return t.Looked(ref, c.options.Clock.Now()) })
	defer func() {
		c.waits.Looked(ref, c.notes.end(ref), err != nil, c.again(ref), c.options.Clock.Now())
	}()
	s := c.index.Get(ref)
	if s == nil {
		c.forget(ref)
		return 0, nil
	}
	wait, err = c.look(ctx, ref, s)
	if apierrors.IsNotFound(err) {
		c.index.Gone(ref, s)
		c.forget(ref)
		return 0, nil
	}
	return wait, err
}

// forget drops a workload that is gone.
func (c *Controller) forget(ref workload.Ref) {
	c.notes.forget(ref)
	c.told.forget(subject{workload: ref})
	c.waits.Older.Forget(ref)
	c.plans(func(p *rollout.Planner) { p.Forget(ref, c.options.Clock.Now()) })
}

// asks puts a question about a workload to the planner.
func (c *Controller) asks(ref workload.Ref, question func(*rollout.Planner, workload.Ref) bool) (answer bool) {
	c.planned(func(p *rollout.Planner) { answer = question(p, ref) })
	return answer
}

// mark is the moment of now, for what is found out from now on.
func (c *Controller) mark() (mark uint64) {
	c.planned(func(p *rollout.Planner) { mark = p.Mark() })
	return mark
}

// look looks at one workload and does what is due: nothing, a recording, or a roll. It
// returns how long to wait before the next look, zero when something else will wake it.
// After an error the look is tried again with backoff, for ever.
func (c *Controller) look(ctx context.Context, ref workload.Ref, s *Workload) (time.Duration, error) {
	if c.asks(ref, (*rollout.Planner).Uncertain) { // the watch may not have told of it yet
		var err error
		if s, err = c.reread(ctx, ref, s); err != nil {
			return 0, fmt.Errorf("finding out whether it rolls: %w", err)
		}
	}
	mark := c.mark()
	if served := c.serves(ref, s); !served || s.Fault != "" {
		return c.lookOn(ctx, ref, s, served)
	}
	review, err := c.review(ctx, ref, s)
	if err != nil {
		return 0, err
	}
	c.noteRolled(ctx, ref, s)
	c.noteRecorded(ctx, ref, s)
	c.sayUnreadable(ref, s, review)
	c.waits.Older.Looked(ref, review.Older(s.Records), review.Declined, lookup{c}.Written, c.options.Clock.Now())
	note := c.notes.of(ref)
	note.holds.About = at(ref, review.Untrue)
	gone := c.sayGone(ref, s, &review)
	note.missed(review.Missing)
	for i := range review.ToRecord {
		source := review.ToRecord[i].Source
		note.came(source, c.sources.Content(ref.Namespace, source))
	}
	withdrawnErr := c.withdrawn(ctx, ref, s, review)
	wait, err := c.act(ctx, ref, s, mark, review)
	if err = errors.Join(err, withdrawnErr); err == nil && review.rests() && !c.asks(ref, (*rollout.Planner).Follows) {
		c.atRest(ref)
	}
	return sooner(gone, wait), err
}

// reread is a workload as the API server has it now.
func (c *Controller) reread(ctx context.Context, ref workload.Ref, was *Workload) (*Workload, error) {
	body, err := c.api.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	_, now, err := c.options.read(ref.Kind, body)
	if err != nil {
		return nil, err
	}
	if now.UID != was.UID {
		return nil, errMoved
	}
	c.index.Renew(ref, now)
	return now, nil
}

// act does what a review asks for.
func (c *Controller) act(ctx context.Context, ref workload.Ref, s *Workload, mark uint64, review review) (time.Duration, error) {
	wait, rolls, err := c.due(ctx, ref, s, mark, review)
	readmit := c.record
	switch {
	case rolls:
		readmit = c.roll
	case !review.Records():
		return wait, err
	}
	again, readmitErr := c.throttled(ref, func() (time.Duration, error) { return readmit(ctx, ref, s, review) })
	return sooner(wait, again), errors.Join(err, readmitErr)
}

// lookOn looks at a workload for which nothing is done, because it is not opted in or
// its template cannot be read. What it has failed with stays halted.
func (c *Controller) lookOn(ctx context.Context, ref workload.Ref, s *Workload, served bool) (time.Duration, error) {
	if served {
		c.sayOnce(ref, s, checksum.TemplateUnreadable, s.Fault)
	} else {
		c.notes.forget(ref)
		c.waits.Older.Forget(ref)
		c.told.forget(subject{workload: ref}, checksum.PodsUnseen, checksum.Retry) // as its rollout is followed
	}
	verdict, err := c.decide(ctx, ref, s, c.facts(ref, s, c.mark(), &review{policy: c.policy(ref, s)}))
	if !served && err == nil && !c.asks(ref, (*rollout.Planner).Follows) {
		c.told.forget(subject{workload: ref})
	}
	return verdict.Wait, err
}

// due asks the planner whether a workload with changed sources may roll now, and tells
// people what holds it. wait is how long to wait before the next look, zero when
// something else will wake it.
func (c *Controller) due(ctx context.Context, ref workload.Ref, s *Workload, mark uint64, r review) (wait time.Duration, rolls bool, err error) {
	verdict, err := c.decide(ctx, ref, s, c.facts(ref, s, mark, &r))
	switch {
	case err != nil:
		return 0, false, fmt.Errorf("finding out how it is: %w", err)
	case len(r.Untrue) == 0:
		return verdict.Wait, false, nil
	case verdict.Roll:
		return 0, true, nil
	}
	return c.tellHeld(ctx, ref, s, &r, verdict), false, nil
}

// facts are what is known of a workload at a mark, and what its review says.
func (c *Controller) facts(ref workload.Ref, s *Workload, mark uint64, r *review) *rollout.Facts {
	f := &rollout.Facts{UID: string(s.UID), Records: s.Records, Sources: s.Sources, Served: c.serves(ref, s), Status: s.Status,
		Standstill: s.Standstill, Mark: mark, Review: r.Review, Policy: r.policy}
	concerned := false
	if c.planned(func(p *rollout.Planner) { concerned = p.Concerned(ref, s.Sources) }); concerned {
		c.carries(ref, s, f)
	}
	return f
}

// decide gives the planner the facts, and what it wants to be read beside them.
func (c *Controller) decide(ctx context.Context, ref workload.Ref, s *Workload, f *rollout.Facts) (verdict rollout.Verdict, err error) {
	var need rollout.Needs
	for c.planned(func(p *rollout.Planner) { need = p.Needs(ref) }); ; need = verdict.Needs {
		err := c.read(ctx, ref, s, f, need)
		if err != nil && (f.Pods == nil || f.Pods.Access != rollout.Unread) {
			return verdict, err
		}
		c.plans(func(p *rollout.Planner) { verdict = p.Look(ref, f, c.options.Clock.Now()) })
		if err != nil || !verdict.Needs.Any() {
			return verdict, err
		}
	}
}

// read reads what is needed beside a workload. That pods could not be listed is for the planner to
// know.
func (c *Controller) read(ctx context.Context, ref workload.Ref, s *Workload, f *rollout.Facts, need rollout.Needs) (err error) {
	if need.Pods {
		switch f.Pods, err = c.podsOf(ctx, ref, s, need.Selector); {
		case f.Pods.Access == rollout.Forbidden:
			c.sayUnseen(ref, s, err)
		case err != nil:
			return fmt.Errorf("following a rollout: %w", err)
		}
	}
	if need.Muted {
		body, err := c.api.get(ctx, ref)
		if err != nil {
			return fmt.Errorf("finding out why its status does not report its rollout: %w", err)
		}
		muted := ref.Kind.Muted(body)
		f.Muted = &muted
	}
	return c.readNodes(ctx, f, need.Nodes)
}

// readNodes reads whether nodes are ready.
func (c *Controller) readNodes(ctx context.Context, f *rollout.Facts, names []string) error {
	if f.Nodes == nil {
		f.Nodes = map[string]bool{}
	}
	for _, name := range names {
		if _, known := f.Nodes[name]; known {
			continue
		}
		ready, err := c.api.nodeReady(ctx, name)
		if err != nil {
			return err
		}
		f.Nodes[name] = ready
	}
	return nil
}

// tellEnded tells what became of a rollout.
func (c *Controller) tellEnded(ctx context.Context, e rollout.Ended) {
	c.metrics.rollouts.WithLabelValues(e.How.Label()).Inc()
	if e.How != checksum.RolloutFailed {
		klog.FromContext(ctx).Info("Settled", "workload", e.Workload.String(), "healthy", e.How == checksum.Healthy)
		return
	}
	klog.FromContext(ctx).Info("Rollout failed", "workload", e.Workload.String(), "why", e.Why)
	if s := c.index.Get(e.Workload); s != nil {
		c.say(e.Workload, s, checksum.RolloutFailed, "the rollout has failed: "+e.Why+
			". kubectl describe shows more. Put the old content back, or fix it: "+rollsThen(e.Workload, e.Broken)+". "+back(s))
	}
}

// podsOf are the pods of a workload, of every revision. What cannot be read as a
// selector selects nothing: then the status alone tells.
func (c *Controller) podsOf(ctx context.Context, ref workload.Ref, s *Workload, selector *string) (*rollout.Pods, error) {
	if selector == nil {
		body, err := c.api.get(ctx, ref)
		if err != nil {
			return &rollout.Pods{Access: rollout.Unread}, err
		}
		text, _ := ref.Kind.Selector(body)
		selector = &text
	}
	if *selector == "" {
		return &rollout.Pods{Access: rollout.Unselected}, nil
	}
	all, err := c.api.pods(ctx, ref.Namespace, *selector)
	if !s.Borrowed() { // else they are those of another object
		all = slices.DeleteFunc(all, func(pod workload.Pod) bool { return !c.options.Kinds.MadeBy(ref, s.UID, &pod) })
	}
	pods := &rollout.Pods{All: all, Selector: *selector}
	switch {
	case apierrors.IsForbidden(err):
		pods.Access = rollout.Forbidden
	case err != nil:
		pods.Access = rollout.Unread
	}
	return pods, err
}

// planned asks the planner something, or tells it something of which nothing follows, under its
// lock.
func (c *Controller) planned(do func(*rollout.Planner)) {
	c.planLock.Lock()
	defer c.planLock.Unlock()
	do(c.plan)
}

// cycleEvery is how far apart cycles of the planner are at least.
const cycleEvery = 100 * time.Millisecond

// plans tells the planner something, and has it do a cycle soon.
func (c *Controller) plans(do func(*rollout.Planner)) {
	busy, wait := false, time.Duration(0)
	c.planned(func(p *rollout.Planner) {
		do(p)
		busy, wait = p.Busy(), cycleEvery-c.options.Clock.Since(c.cycled)
	})
	if busy {
		c.queue.AddAfter(workload.Ref{}, wait)
	}
}

// lookup is what the plan looks up: it implements rollout.Cluster.
type lookup struct{ *Controller }

func (l lookup) Using(at rollout.SourceRef) []workload.Ref {
	return l.index.Using(at.Namespace, at.Source)
}

func (l lookup) Content(at rollout.SourceRef) *checksum.Content {
	return l.sources.Content(at.Namespace, at.Source)
}

func (l lookup) Written(at rollout.SourceRef) time.Time {
	written, _ := l.sources.Written(at.Namespace, at.Source)
	return written
}

func (l lookup) Workloads() int {
	return l.index.Count(func(ref workload.Ref, s *Workload) bool {
		served, _ := l.served(ref, s)
		return served && ref.Kind.Restarts
	})
}

func (l lookup) Copies(of checksum.Source) (copies []rollout.SourceRef) {
	for _, namespace := range l.sources.Namespaces(of) {
		copies = append(copies, rollout.SourceRef{Namespace: namespace, Source: of})
	}
	return copies
}

// again reports whether a workload is to be tried again, or stands in line to be.
func (c *Controller) again(ref workload.Ref) (again bool) {
	c.permits(func(t *throttle.Throttle) []workload.Ref { again = t.Stands(ref); return nil })
	return again || c.asks(ref, (*rollout.Planner).Again)
}
