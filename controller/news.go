package controller

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// tellEnded tells what became of a rollout.
func (c *Controller) tellEnded(ctx context.Context, e rollout.Ended) {
	c.metrics.rollouts.WithLabelValues(e.How.Label()).Inc()
	if e.How != reason.RolloutFailed {
		klog.FromContext(ctx).Info("Settled", "workload", e.Workload.String(), "healthy", e.How == reason.Healthy)
		return
	}
	klog.FromContext(ctx).Info("Rollout failed", "workload", e.Workload.String(), "why", e.Why.String())
	if s := c.index.Get(e.Workload); s != nil {
		advice, _ := e.Why.Advice(e.Workload)
		undo := "kubectl rollout undo does not bring back old content"
		if len(s.Records.PinnedAt()) > 0 {
			undo = "kubectl rollout undo brings back the revision before, with the content that was pinned there"
		}
		(&look{Controller: c, ref: e.Workload, s: s}).say(reason.RolloutFailed, "the rollout has failed: "+e.Why.String()+". kubectl describe shows more. "+advice+". "+undo)
	}
}

// tellNews tells what has become of changes.
func (c *Controller) tellNews(out *rollout.Orders) {
	// What is halted is told once, until it goes on or the source holds something else.
	tell := func(all []rollout.News, why reason.Reason, words func(rollout.News) string) {
		for _, one := range all {
			why := why
			if one.Broken > 0 {
				why = reason.ChangeIncomplete
			}
			about, text := "", words(one) // by whom; else a second halt would be counted up under the words of the first
			if one.By != (workload.Ref{}) {
				about = one.By.People()
			}
			of := waiting.OfSource(one.Source)
			if why != reason.ChangeHalted {
				c.told.Over(of, reason.ChangeHalted, "")
			} else if !c.told.First(of, why, text) {
				continue
			} else if !one.Foreign {
				c.metrics.halts.Inc()
			}
			if why == reason.ChangeRolledOut && c.sources.MadeAnew(one.Source.Namespace, one.Source.Source) {
				continue // new pods may have the old content, which is told
			}
			c.onSource(one.Source, why, text, about)
		}
	}
	tell(out.Halted, reason.ChangeHalted, func(n rollout.News) string {
		why, advice := "the change stops in this namespace too: "+failedElsewhere, rollout.Mend
		if !n.Foreign {
			why = "the change stops, because " + n.Why.HaltReason(n.By, "it")
			advice, _ = n.Why.Advice(n.By)
		}
		return fmt.Sprintf("%s. Workloads that wait keep their pods and checksums; a pod that starts meanwhile reads the new content, unless it is pinned. "+
			"%s. To go on all the same: kubectl annotate --overwrite %s %s configstamp.dev/resume=$(date -u +%%FT%%TZ)", why, advice, n.Source.Source.Kind, n.Source.Source.Name)
	})
	tell(out.Resumed, reason.ChangeResumed, func(n rollout.News) string {
		if n.Foreign {
			return "the change goes on: what has failed in other namespaces does not halt it any more"
		}
		return fmt.Sprintf("the change goes on: %s does not halt it any more", n.By.People())
	})
	tell(out.Finished, reason.ChangeRolledOut, func(n rollout.News) string {
		if n.Broken > 0 {
			return fmt.Sprintf("the change has ended: %d of %d workloads have rolled out; the others had no pod available before, and have failed with it", n.Settled, n.Settled+n.Broken)
		}
		return fmt.Sprintf("the change has rolled out, to %d workloads", n.Settled)
	})
}

// failedElsewhere is why a change of a replicated ConfigMap stops where nothing failed.
// What failed, and where, is not for those who read about this namespace.
const failedElsewhere = "copies of this ConfigMap in other namespaces had the same change, and workloads there have failed with it; " +
	"after an hour one workload tries it again, and then one each hour"
