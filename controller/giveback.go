package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
)

// giveBack has the webhook send a workload that has failed back to its former content. The webhook decides whether that is
// possible. An answer that changes nothing and gives no reason is tried again: the webhook was not called, could not find
// out, or knows newer content, which rolls.
func (l *look) giveBack(ctx context.Context) (time.Duration, error) {
	ref, was := l.ref, l.s
	answer, err := l.readmit(ctx, ref, checksum.ReturnManager, false)
	if err != nil {
		l.metrics.readmitted(returning, resultOf(err))
		l.plans(func(p *rollout.Planner) { p.NotReturned(ref, false, l.options.Clock.Now()) })
		return 0, fmt.Errorf("sending it back to its former content: %w", err)
	}
	l.index.Renew(ref, answer.workload)
	after := *answer.workload
	after.Sources = was.Sources
	l.s = &after
	if !rollout.RolledBetween(was.Records, after.Records) {
		final, result := len(reason.ReturnImpossible.Among(answer.warnings)) > 0, reason.WebhookAway
		if final { // the webhook has said so on the workload
			result = reason.Refused
		}
		l.metrics.readmitted(returning, result)
		l.plans(func(p *rollout.Planner) { p.NotReturned(ref, final, l.options.Clock.Now()) })
		return 0, nil
	}
	l.metrics.readmitted(returning, reason.Done)
	klog.FromContext(ctx).Info("Went back to its former content", "workload", ref.String())
	l.planned(func(p *rollout.Planner) { l.mark = p.Mark() })
	if l.review, err = l.reviewOf(ctx, ref, l.s); err != nil {
		return 0, err
	}
	facts := l.facts()
	l.plans(func(p *rollout.Planner) { p.Look(ref, facts, l.options.Clock.Now()) })
	return 0, nil
}

// tellReturn tells what became of a workload that has failed, and is set to return to its former content.
func (c *Controller) tellReturn(ctx context.Context, r rollout.Return) {
	klog.FromContext(ctx).Info("On failure", "workload", r.Workload.String(), "result", r.How.String(), "why", r.Why)
	if s := c.index.Get(r.Workload); s != nil {
		(&look{Controller: c, ref: r.Workload, s: s}).say(r.How, r.How.Sentence(reason.Values{Text: r.Why}))
	}
}
