package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

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

// isTurn reports whether an item of the queue asks whose turn it is: no workload
// has no kind.
func isTurn(user workload.Ref) bool { return user.Kind == nil }

// takeTurns wakes those whose turn has come, and tells what has become of changes.
func (c *Controller) takeTurns(ctx context.Context) {
	var out rollout.Orders
	c.planned(func(p *rollout.Plan) { out = p.Next(c.options.Clock.Now()) })
	for _, user := range append(out.Roll, out.Held...) {
		c.queue.Add(user)
	}
	if out.Again > 0 {
		c.queue.AddAfter(workload.Ref{}, out.Again)
	}
	tell := func(all []rollout.News, why checksum.Reason, text func(rollout.News, rollout.SourceRef) string) {
		for _, one := range all {
			about := "" // by whom; else a second halt would be counted up under the words of the first
			if one.By != (workload.Ref{}) {
				about = one.By.People()
			}
			for _, at := range one.Sources {
				c.onSource(ctx, at, why, text(one, at), about)
			}
		}
	}
	c.metrics.halts.Add(float64(len(out.Halted)))
	tell(out.Halted, checksum.ChangeHalted, func(n rollout.News, at rollout.SourceRef) string {
		return fmt.Sprintf("the change stops, as %s has failed with it: %s. Those that wait keep their pods and checksums; any pod that starts meanwhile reads the new content. "+
			"Put the old content back, or fix it: either way it rolls out by itself. To go on all the same: kubectl annotate --overwrite %s %s configstamp.dev/resume=$(date -u +%%FT%%TZ)", n.By.People(), n.Why, at.Source.Kind, at.Source.Name)
	})
	tell(out.Resumed, checksum.ChangeResumed, func(n rollout.News, _ rollout.SourceRef) string {
		return fmt.Sprintf("the change goes on: %s does not halt it any more", n.By.People())
	})
	tell(out.Finished, checksum.ChangeRolledOut, func(n rollout.News, _ rollout.SourceRef) string {
		return fmt.Sprintf("the change has rolled out, to %d workloads", n.Settled)
	})
}

// lookup is what the plan looks up.
type lookup struct{ *Controller }

// Users implements rollout.Cluster.
func (l lookup) Users(at rollout.SourceRef) []workload.Ref {
	return l.index.users(at.Namespace, at.Source)
}

// Content implements rollout.Cluster.
func (l lookup) Content(at rollout.SourceRef) *checksum.Content {
	return l.sources.Content(at.Namespace, at.Source)
}

// Written implements rollout.Cluster.
func (l lookup) Written(at rollout.SourceRef) time.Time {
	written, _ := l.sources.Written(at.Namespace, at.Source)
	return written
}
