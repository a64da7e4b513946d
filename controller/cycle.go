package controller

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// cycleEvery is how far apart cycles of the planner are at least.
const cycleEvery = 100 * time.Millisecond

// planned asks the planner something, or tells it something of which nothing follows, under its
// lock.
func (c *Controller) planned(do func(*rollout.Planner)) {
	c.planLock.Lock()
	defer c.planLock.Unlock()
	do(c.plan)
}

// asks puts a question about a workload to the planner.
func (c *Controller) asks(ref workload.Ref, question func(*rollout.Planner, workload.Ref) bool) (answer bool) {
	c.planned(func(p *rollout.Planner) { answer = question(p, ref) })
	return answer
}

// again reports whether a workload is to be tried again, or stands in line to be.
func (c *Controller) again(ref workload.Ref) (again bool) {
	c.permits(func(t *throttle.Throttle) []workload.Ref { again = t.Stands(ref); return nil })
	return again || c.asks(ref, (*rollout.Planner).Again)
}

// plans tells the planner something, and has it do a cycle soon.
func (c *Controller) plans(do func(*rollout.Planner)) {
	busy, wait := false, time.Duration(0)
	c.planned(func(p *rollout.Planner) {
		do(p)
		busy, wait = p.Busy(), cycleEvery-c.options.Clock.Since(c.cycled)
	})
	if busy {
		c.cycles.AddAfter(struct{}{}, wait)
	}
}

// nextCycle has the planner do a cycle when one is due. After a panic that is done again, with
// backoff; those whose turn has come are not forgotten.
func (c *Controller) nextCycle(ctx context.Context) bool {
	cycle, shutdown := c.cycles.Get()
	if shutdown {
		return false
	}
	defer c.cycles.Done(cycle)
	defer c.looks.Begin(c.options.Clock.Now())()
	defer c.caught(klog.FromContext(ctx), inTurns, "The planner of turns panicked", func() { c.cycles.AddRateLimited(cycle) })
	c.cycle(ctx)
	c.cycles.Forget(cycle)
	return true
}

// cycle has the planner do a cycle, and does what it orders. It makes no API request: workers do, and the
// event queue.
func (c *Controller) cycle(ctx context.Context) {
	var out rollout.Orders
	c.planned(func(p *rollout.Planner) {
		c.cycled = c.options.Clock.Now()
		p.Watched(func(ref workload.Ref, f *rollout.Facts) {
			if s := c.index.Get(ref); s != nil {
				f.Status, f.Standstill = s.Status, s.Standstill
			}
		})
		out = p.Cycle(c.cycled)
	})
	for _, ref := range append(out.Roll, out.Look...) {
		c.queue.Add(ref)
	}
	if !out.At.IsZero() {
		c.cycles.AddAfter(struct{}{}, out.At.Sub(c.options.Clock.Now()))
	}
	for _, e := range out.Ended {
		c.tellEnded(ctx, e)
	}
	for _, r := range out.Returns {
		c.tellReturn(ctx, r)
	}
	c.tellNews(&out)
	for _, at := range out.Changed {
		c.outcomes.report(at.Namespace, at.Source)
	}
}

// lookup is what the planner looks up: it implements rollout.Cluster.
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
		return l.serves(ref, s) && ref.Kind.Restarts
	})
}

func (l lookup) Copies(of checksum.Source) (copies []rollout.SourceRef) {
	for _, namespace := range l.sources.Namespaces(of) {
		copies = append(copies, rollout.SourceRef{Namespace: namespace, Source: of})
	}
	return copies
}
