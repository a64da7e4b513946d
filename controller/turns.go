package controller

import (
	"context"
	"fmt"
	"strings"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// isTurn reports whether an item of the queue asks whose turn it is: no workload
// has no kind.
func isTurn(ref workload.Ref) bool { return ref.Kind == nil }

// takeTurns has the planner do a cycle, and does what it orders.
func (c *Controller) takeTurns(ctx context.Context) {
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
	for _, ref := range append(out.Roll, out.Held...) {
		c.queue.Add(ref)
	}
	if !out.At.IsZero() {
		c.queue.AddAfter(workload.Ref{}, out.At.Sub(c.options.Clock.Now()))
	}
	for _, e := range out.Ended {
		c.tellEnded(ctx, e)
	}
	c.tellNews(ctx, &out)
}

// tellNews tells what has become of changes.
func (c *Controller) tellNews(ctx context.Context, out *rollout.Orders) {
	// What is halted is told once, until it goes on or the source holds something else.
	tell := func(all []rollout.News, why checksum.Reason, text func(rollout.News, rollout.SourceRef) string) {
		for _, one := range all {
			about := "" // by whom; else a second halt would be counted up under the words of the first
			if one.By != (workload.Ref{}) {
				about = one.By.People()
			}
			halts := false
			for _, at := range one.Sources {
				text := text(one, at)
				if why != checksum.ChangeHalted {
					c.told.over(subject{source: at}, checksum.ChangeHalted, "")
				}
				if why == checksum.ChangeRolledOut && c.sources.MadeAnew(at.Namespace, at.Source) {
					continue // new pods may have the old content, which is told
				}
				if why == checksum.ChangeHalted && !c.told.first(subject{source: at}, why, text) {
					continue
				}
				halts = why == checksum.ChangeHalted && !one.Foreign
				c.onSource(ctx, at, why, text, about)
			}
			if halts {
				c.metrics.halts.Inc()
			}
		}
	}
	tell(out.Halted, checksum.ChangeHalted, func(n rollout.News, at rollout.SourceRef) string {
		why := "the change stops in this namespace too: " + failedElsewhere
		switch {
		case n.Foreign:
		case n.Why == "":
			why = fmt.Sprintf("the change stops, because %s. To take the content there too: %s", declinedBy(n.By), accepts(n.By))
		default:
			why = fmt.Sprintf("the change stops, because %s has failed with it: %s", n.By.People(), n.Why)
		}
		return fmt.Sprintf("%s. Workloads that wait keep their pods and checksums; a pod that starts meanwhile reads the new content, unless it is pinned. "+
			"Put the old content back, or fix it: either way it rolls out by itself. To go on all the same: kubectl annotate --overwrite %s %s configstamp.dev/resume=$(date -u +%%FT%%TZ)", why, at.Source.Kind, at.Source.Name)
	})
	tell(out.Resumed, checksum.ChangeResumed, func(n rollout.News, _ rollout.SourceRef) string {
		if n.Foreign {
			return "the change goes on: what has failed in other namespaces does not halt it any more"
		}
		return fmt.Sprintf("the change goes on: %s does not halt it any more", n.By.People())
	})
	tell(out.Finished, checksum.ChangeRolledOut, func(n rollout.News, _ rollout.SourceRef) string {
		if n.Broken > 0 {
			return fmt.Sprintf("the change has rolled out, to %d of %d workloads; the others had no pod available before, and have failed", n.Settled, n.Settled+n.Broken)
		}
		return fmt.Sprintf("the change has rolled out, to %d workloads", n.Settled)
	})
}

// declinedBy says that an undo of a workload has sent content back.
func declinedBy(ref workload.Ref) string {
	return "an undo of " + ref.People() + " declined its content"
}

// accepts is the command that takes declined content.
func accepts(ref workload.Ref) string {
	return "kubectl configstamp accept " + strings.ToLower(ref.Kind.Name) + "/" + ref.Name + " -n " + ref.Namespace
}

// failedElsewhere is why a change of a replicated ConfigMap stops where nothing failed.
// What failed, and where, is not for those who read about this namespace.
const failedElsewhere = "copies of this ConfigMap in other namespaces had the same change, and workloads there have failed with it; " +
	"after a while (--foreign-halt) workloads try it again, one after the other"
