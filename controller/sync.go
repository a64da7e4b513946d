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
		return c.forget(ref), nil
	}
	wait, err = c.look(ctx, ref, s)
	if apierrors.IsNotFound(err) {
		c.index.Gone(ref, s)
		return c.forget(ref), nil
	}
	return wait, err
}

// forget drops a workload that is gone, and returns how long to wait before its
// rollout is dropped as well.
func (c *Controller) forget(ref workload.Ref) (wait time.Duration) {
	c.notes.forget(ref)
	c.told.forget(ref)
	c.waits.Older.Forget(ref)
	c.planned(func(p *rollout.Plan) { wait = p.Forget(ref, c.options.Clock.Now()) })
	return wait
}

// asks puts a question about a workload to the plan.
func (c *Controller) asks(ref workload.Ref, question func(*rollout.Plan, workload.Ref) bool) (answer bool) {
	c.planned(func(p *rollout.Plan) { answer = question(p, ref) })
	return answer
}

// look looks at one workload and does what is due: nothing, a recording, or a roll. It
// returns how long to wait before the next look, zero when something else will wake it.
// After an error the look is tried again with backoff, for ever.
func (c *Controller) look(ctx context.Context, ref workload.Ref, s *Workload) (time.Duration, error) {
	if c.asks(ref, (*rollout.Plan).Uncertain) { // the watch may not have told of it yet
		var err error
		if s, err = c.reread(ctx, ref, s); err != nil {
			return 0, fmt.Errorf("finding out whether it rolls: %w", err)
		}
		c.planned(func(p *rollout.Plan) { p.Confirmed(ref, s.Records, s.Sources, c.options.Clock.Now()) })
	}
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
	wait, err := c.act(ctx, ref, s, review)
	if next := c.index.Get(ref); next != nil {
		s = next // as it is after a re-admission
	}
	again, followErr := c.follow(ctx, ref, s)
	if err = errors.Join(err, withdrawnErr, followErr); err == nil && review.rests() && !c.asks(ref, (*rollout.Plan).Follows) {
		c.atRest(ref)
	}
	return sooner(gone, sooner(wait, again)), err
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
func (c *Controller) act(ctx context.Context, ref workload.Ref, s *Workload, review review) (time.Duration, error) {
	wait, rolls, err := c.due(ctx, ref, s, review)
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
	c.planned(func(p *rollout.Plan) { p.Withdraw(ref, c.options.Clock.Now()) })
	if served {
		c.sayOnce(ref, s, checksum.TemplateUnreadable, s.Fault)
	} else {
		c.notes.forget(ref)
		c.waits.Older.Forget(ref)
		c.told.forget(ref, checksum.PodsUnseen, checksum.Retry) // as its rollout is followed
	}
	wait, err := c.follow(ctx, ref, s)
	if !served && err == nil && !c.asks(ref, (*rollout.Plan).Follows) {
		c.told.forget(ref)
	}
	return wait, err
}

// due asks the plan whether a workload with changed sources may roll now, and tells
// people what holds it. wait is how long to wait before the next look, zero when
// something else will wake it.
func (c *Controller) due(ctx context.Context, ref workload.Ref, s *Workload, r review) (wait time.Duration, rolls bool, err error) {
	facts := c.facts(ref, s)
	if len(r.Untrue) == 0 {
		c.planned(func(p *rollout.Plan) { p.RolledByOthers(ref, facts, c.options.Clock.Now()) })
		return 0, false, nil
	}
	facts.Review, facts.Policy = r.Review, r.policy
	verdict, err := c.decide(ctx, ref, s, facts, (*rollout.Plan).Looked)
	if err != nil {
		return 0, false, fmt.Errorf("finding out whether only its nodes are not ready: %w", err)
	}
	if verdict.Do == rollout.Roll {
		return 0, true, nil
	}
	return c.tellHeld(ctx, ref, s, &r, verdict), false, nil
}

// facts are what is known of a workload now.
func (c *Controller) facts(ref workload.Ref, s *Workload) *rollout.Facts {
	f := &rollout.Facts{UID: string(s.UID), Records: s.Records, Sources: s.Sources, Served: c.serves(ref, s), Status: s.Status,
		Standstill: s.Standstill}
	c.planned(func(p *rollout.Plan) { f.Mark = p.Mark() })
	if s.Records.Declined != "" || c.asks(ref, (*rollout.Plan).Concerned) {
		c.carries(ref, s, f)
		f.Policy = c.policy(ref, s) // how long it has to be well
	}
	return f
}

// decide gives the plan the facts, and what it wants to be read beside them.
func (c *Controller) decide(ctx context.Context, ref workload.Ref, s *Workload, f *rollout.Facts, look func(*rollout.Plan, workload.Ref, *rollout.Facts, time.Time) rollout.Verdict) (verdict rollout.Verdict, err error) {
	for {
		c.planned(func(p *rollout.Plan) { verdict = look(p, ref, f, c.options.Clock.Now()) })
		switch verdict.Do {
		case rollout.ReadPods:
			if f.Pods, err = c.podsOf(ctx, ref, s, verdict.Selector); f.Pods.Access == rollout.Forbidden {
				c.sayUnseen(ref, s, err)
				err = nil
			}
		case rollout.ReadNodes:
			if err := c.readNodes(ctx, f, verdict.Nodes); err != nil {
				return verdict, err
			}
		case rollout.ReadMuted:
			body, err := c.api.get(ctx, ref)
			if err != nil {
				return verdict, fmt.Errorf("finding out why its status does not report its rollout: %w", err)
			}
			muted := ref.Kind.Muted(body)
			f.Muted = &muted
		case rollout.Nothing, rollout.Roll:
			switch {
			case verdict.Retry:
				return verdict, err
			case err != nil && verdict.Blind:
				c.sayUnseen(ref, s, err)
			}
			return verdict, nil
		}
	}
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

// follow looks after the rollout of a workload, if it has one, and tells what becomes
// of it. It returns how long to wait before looking again.
func (c *Controller) follow(ctx context.Context, ref workload.Ref, s *Workload) (time.Duration, error) {
	facts := c.facts(ref, s)
	verdict, err := c.decide(ctx, ref, s, facts, (*rollout.Plan).Followed)
	if err != nil {
		return 0, fmt.Errorf("following a rollout: %w", err)
	}
	switch verdict.Ended {
	case checksum.NoReason:
		return verdict.Wait, nil
	case checksum.RolloutFailed:
		klog.FromContext(ctx).Info("Rollout failed", "workload", ref.String(), "why", verdict.Failed)
		c.say(ref, s, checksum.RolloutFailed, "the rollout has failed: "+verdict.Failed+
			". kubectl describe shows more. Put the old content back, or fix it: "+rollsThen(ref, facts.Broken())+". "+back(s))
	default:
		klog.FromContext(ctx).Info("Settled", "workload", ref.String(), "healthy", verdict.Ended == checksum.Healthy)
	}
	c.metrics.rollouts.WithLabelValues(verdict.Ended.Label()).Inc()
	return verdict.Wait, nil
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

// planned asks the plan something, or tells it something, under its lock, and queues the
// workloads that it wants looked at.
func (c *Controller) planned(do func(*rollout.Plan)) {
	requeues := func() []rollout.Requeue {
		c.planLock.Lock()
		defer c.planLock.Unlock()
		do(c.plan)
		return c.plan.Requeues()
	}()
	for _, requeue := range requeues {
		c.queue.AddAfter(requeue.Workload, requeue.After)
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
	return again || c.asks(ref, (*rollout.Plan).Again)
}
