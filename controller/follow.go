package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// planned asks the plan something, or tells it something, under the one lock around
// it, and queues whom the plan wants looked at.
func (c *Controller) planned(do func(*rollout.Plan)) {
	for _, stir := range c.plan.ask(do) {
		c.queue.AddAfter(stir.User, stir.After)
	}
}

// plan is the plan of rollouts, and the lock around it.
type plan struct {
	mu   sync.Mutex
	plan *rollout.Plan
}

func (p *plan) ask(do func(*rollout.Plan)) []rollout.Stir {
	p.mu.Lock()
	defer p.mu.Unlock()
	do(p.plan)
	return p.plan.Stirs()
}

// facts are what is known of a workload now.
func (c *Controller) facts(user workload.Ref, s *subject) *rollout.Facts {
	f := &rollout.Facts{UID: string(s.uid), Records: s.records, Sources: s.sources, Served: c.serves(user, s), Status: s.status,
		Standstill: rollout.Standstill{Since: s.still, Calm: s.calm, Relapsed: s.relapsed}}
	c.planned(func(p *rollout.Plan) { f.Mark = p.Mark() })
	return f
}

// decide gives the plan the facts, and what it wants to be read beside them.
func (c *Controller) decide(ctx context.Context, user workload.Ref, s *subject, f *rollout.Facts, look func(*rollout.Plan, workload.Ref, *rollout.Facts, time.Time) rollout.Verdict) (verdict rollout.Verdict, err error) {
	for {
		c.planned(func(p *rollout.Plan) { verdict = look(p, user, f, c.options.Clock.Now()) })
		switch verdict.Do {
		case rollout.ReadPods:
			if f.Pods, err = c.podsOf(ctx, user, verdict.Selector); f.Pods.Access == rollout.Forbidden {
				c.sayUnseen(user, s, err)
				err = nil
			}
		case rollout.ReadNodes:
			if err := c.readNodes(ctx, f, verdict.Nodes); err != nil {
				return verdict, err
			}
		case rollout.ReadMuted:
			body, err := c.api.get(ctx, user)
			if err != nil {
				return verdict, fmt.Errorf("looking why it does not tell how its rollout is: %w", err)
			}
			muted := user.Kind.Muted(body)
			f.Muted = &muted
		case rollout.Nothing, rollout.Roll:
			switch {
			case verdict.Retry:
				return verdict, err
			case err != nil && verdict.Blind:
				c.sayUnseen(user, s, err)
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
func (c *Controller) follow(ctx context.Context, user workload.Ref, s *subject) (time.Duration, error) {
	facts := c.facts(user, s)
	var concerned bool
	if c.planned(func(p *rollout.Plan) { concerned = p.Concerned(user) }); concerned {
		facts.Carried = c.carried(user, s)
	}
	verdict, err := c.decide(ctx, user, s, facts, (*rollout.Plan).Followed)
	if err != nil {
		return 0, fmt.Errorf("looking after a rollout: %w", err)
	}
	switch verdict.Ended {
	case checksum.NoReason:
		return verdict.Wait, nil
	case checksum.RolloutFailed:
		klog.FromContext(ctx).Info("Rollout failed", "workload", user.String(), "why", verdict.Failed)
		c.say.event(user, s, checksum.RolloutFailed, "the rollout has failed: "+verdict.Failed+
			". kubectl describe shows more. Put the old content back, or fix it: either way it rolls out by itself. kubectl rollout undo brings back no content")
	default:
		klog.FromContext(ctx).Info("Settled", "workload", user.String(), "healthy", verdict.Ended == checksum.Healthy)
	}
	c.metrics.settled(verdict.Ended)
	return verdict.Wait, nil
}

// carries reports whether a workload's template has a stamp of what a source holds,
// whatever its policy says, and whether it is served or not.
func (c *Controller) carries(user workload.Ref, s *subject, source checksum.Source, content *checksum.Content) bool {
	stamp, stamped := checksum.Records{Stamps: s.records.Stamps}.Of(source)
	ring := c.keys.Ring()
	if !stamped || ring == nil {
		return false
	}
	policy := checksum.DefaultPolicy()
	policy.SecretProviderClasses = true
	policy.Also = []checksum.Source{source} // it counts, whoever names it
	references := slices.DeleteFunc(slices.Clone(s.references), func(r checksum.Reference) bool { return r.Source != source })
	selections := checksum.Selections(references, policy)
	if len(selections) == 0 {
		return false
	}
	verdict := ring.Assess(user.Namespace, selections[0], stamp, true, content)
	return verdict == checksum.True || verdict == checksum.Reselected
}

// carried are the sources of which a workload's template has a stamp of what they hold
// now, with that content.
func (c *Controller) carried(user workload.Ref, s *subject) map[checksum.Source]*checksum.Content {
	carried := map[checksum.Source]*checksum.Content{}
	for _, source := range s.sources {
		if content := c.sources.Content(user.Namespace, source); c.carries(user, s, source, content) {
			carried[source] = content
		}
	}
	return carried
}

// podsOf are the pods of a workload, of every revision. What cannot be read as a
// selector selects nothing: then the status alone tells.
func (c *Controller) podsOf(ctx context.Context, user workload.Ref, selector *string) (*rollout.Pods, error) {
	if selector == nil {
		body, err := c.api.get(ctx, user)
		if err != nil {
			return &rollout.Pods{Access: rollout.Unread}, err
		}
		text, _ := user.Kind.Selector(body)
		selector = &text
	}
	if *selector == "" {
		return &rollout.Pods{Access: rollout.Unselected}, nil
	}
	all, err := c.api.pods(ctx, user.Namespace, *selector)
	pods := &rollout.Pods{All: all, Selector: *selector}
	switch {
	case apierrors.IsForbidden(err):
		pods.Access = rollout.Forbidden
	case err != nil:
		pods.Access = rollout.Unread
	}
	return pods, err
}

// lookOn looks at a workload for which nothing is done, because it is not opted in or
// its template cannot be read. What it has failed with stays halted.
func (c *Controller) lookOn(ctx context.Context, user workload.Ref, s *subject, served bool) (time.Duration, error) {
	c.planned(func(p *rollout.Plan) { p.Withdraw(user, c.options.Clock.Now()) })
	if served {
		c.sayOnce(user, s, checksum.TemplateUnreadable, s.fault)
	} else {
		c.notes.leave(user)
		c.others.forget(user)
	}
	wait, err := c.follow(ctx, user, s)
	if !served && err == nil && !c.follows(user) {
		c.notes.forget(user)
	}
	return wait, err
}

// follows reports whether a workload has a rollout that is followed.
func (c *Controller) follows(user workload.Ref) (follows bool) {
	c.planned(func(p *rollout.Plan) { follows = p.Follows(user) })
	return follows
}
