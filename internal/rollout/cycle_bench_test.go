package rollout_test

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// BenchmarkCycle measures a cycle while 20,000 workloads wait for 500 changes, and 100 roll, beside
// the recount of Plan.
func BenchmarkCycle(b *testing.B) {
	b.Run("Recount", func(b *testing.B) {
		c := newBig(b)
		c.editAll()
		c.orders()
		for b.Loop() {
			c.plan.Recount(c.now)
		}
	})
	b.Run("Cycle", func(b *testing.B) {
		c := newBig(b)
		p := rollout.NewPlanner(benchLimits(), c)
		var all []workload.Ref
		for _, refs := range c.bySource {
			all = append(all, refs...)
		}
		p.Lead(all, c.now)
		look := func(ref workload.Ref, waits bool) {
			f := *c.facts[ref]
			if f.Mark = p.Mark(); waits {
				f.Review.Untrue = f.Sources
			}
			p.Look(ref, &f, c.now)
		}
		for _, ref := range all {
			look(ref, false)
		}
		bundle := c.content()
		for namespace := range benchNamespaces {
			for change := range benchChanges {
				at, content := c.change(namespace, change), bundle
				if change > 0 {
					content = c.content()
				}
				was := c.contents[at]
				c.contents[at] = content
				p.Edited(at, was, content, c.now)
			}
		}
		c.now = c.now.Add(time.Minute)
		for namespace := range benchNamespaces {
			for change := range benchChanges {
				for _, ref := range c.bySource[c.change(namespace, change)] {
					look(ref, true)
				}
			}
		}
		if out := p.Cycle(c.now); len(out.Roll) != 100 {
			b.Fatalf("%d roll, want 100", len(out.Roll))
		}
		for b.Loop() {
			p.Cycle(c.now)
		}
	})
}
