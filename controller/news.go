package controller

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// tellEnded tells what became of a rollout.
func (c *Controller) tellEnded(ctx context.Context, e rollout.Ended) {
	c.metrics.rollouts.WithLabelValues(e.How.Label()).Inc()
	if e.How != checksum.RolloutFailed {
		klog.FromContext(ctx).Info("Settled", "workload", e.Workload.String(), "healthy", e.How == checksum.Healthy)
		return
	}
	klog.FromContext(ctx).Info("Rollout failed", "workload", e.Workload.String(), "why", e.Why)
	if s := c.index.Get(e.Workload); s != nil {
		c.newLook(e.Workload, s).say(checksum.RolloutFailed, "the rollout has failed: "+e.Why+
			". kubectl describe shows more. Put the old content back, or fix it: "+rollsThen(e.Workload, e.Broken)+". "+back(s))
	}
}

// tellNews tells what has become of changes.
func (c *Controller) tellNews(ctx context.Context, out *rollout.Orders) {
	// What is halted is told once, until it goes on or the source holds something else.
	tell := func(all []rollout.News, why checksum.Reason, words func(rollout.News) string) {
		for _, one := range all {
			about, text := "", words(one) // by whom; else a second halt would be counted up under the words of the first
			if one.By != (workload.Ref{}) {
				about = one.By.People()
			}
			of := waiting.OfSource(one.Source)
			if why != checksum.ChangeHalted {
				c.told.Over(of, checksum.ChangeHalted, "")
			} else if !c.told.First(of, why, text) {
				continue
			} else if !one.Foreign {
				c.metrics.halts.Inc()
			}
			if why == checksum.ChangeRolledOut && c.sources.MadeAnew(one.Source.Namespace, one.Source.Source) {
				continue // new pods may have the old content, which is told
			}
			c.onSource(ctx, one.Source, why, text, about)
		}
	}
	tell(out.Halted, checksum.ChangeHalted, func(n rollout.News) string {
		why := "the change stops in this namespace too: " + failedElsewhere
		switch {
		case n.Foreign:
		case n.Why == "":
			why = fmt.Sprintf("the change stops, because %s. To take the content there too: %s", declinedBy(n.By), accepts(n.By))
		default:
			why = fmt.Sprintf("the change stops, because %s has failed with it: %s", n.By.People(), n.Why)
		}
		return fmt.Sprintf("%s. Workloads that wait keep their pods and checksums; a pod that starts meanwhile reads the new content, unless it is pinned. "+
			"Put the old content back, or fix it: either way it rolls out by itself. To go on all the same: kubectl annotate --overwrite %s %s configstamp.dev/resume=$(date -u +%%FT%%TZ)", why, n.Source.Source.Kind, n.Source.Source.Name)
	})
	tell(out.Resumed, checksum.ChangeResumed, func(n rollout.News) string {
		if n.Foreign {
			return "the change goes on: what has failed in other namespaces does not halt it any more"
		}
		return fmt.Sprintf("the change goes on: %s does not halt it any more", n.By.People())
	})
	tell(out.Finished, checksum.ChangeRolledOut, func(n rollout.News) string {
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
