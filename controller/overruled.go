package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// noteOverruled tells that somebody had a workload take new content, by an order or together
// with a change of its template, though people had been told that something held it. Our own
// rolls are noted before, by noteRolled.
func (c *Controller) noteOverruled(ctx context.Context, user workload.Ref, s *Workload) error {
	was := c.notes.of(user).told
	if was == nil {
		return nil
	}
	taken := slices.DeleteFunc(slices.Clone(was.sources), func(source checksum.Source) bool {
		is, stamped := (&checksum.Records{Stamps: s.Records.Stamps}).Of(source)
		before, _ := was.records.Of(source)
		return !stamped || is == before
	})
	if len(taken) == 0 {
		return nil
	}
	body, err := c.api.get(ctx, user)
	if err != nil {
		return fmt.Errorf("finding out who rolled the workload: %w", err)
	}
	manager := checksum.RollingManager
	if was.records.Declined != "" && s.Records.Declined == "" {
		manager = checksum.AcceptManager
	}
	who := "somebody ordered it (by a patch with the field manager " + manager + ")"
	if written, by := user.Kind.TemplateWritten(body); written.After(c.waitedSince(user, was)) {
		who = fmt.Sprintf("its template was changed (by the field manager %q)", by)
	}
	klog.FromContext(ctx).Info("Overruled", "workload", user.String(), "took", list(taken), "who", who, "held", was.text)
	c.say(user, s, checksum.Overruled, fmt.Sprintf("%s: %s, with the new content of %s. This overrules the earlier event: %s", who, rolls(user, s), list(taken), was.text), taken...)
	c.notes.of(user).told = nil
	return nil
}

// waitedSince is when the last of the sources for which a workload waited was written. A
// template that was written after that took their new content.
func (c *Controller) waitedSince(user workload.Ref, was *heldBy) (since time.Time) {
	for _, source := range was.sources {
		if written, _ := c.sources.Written(user.Namespace, source); written.After(since) {
			since = written
		}
	}
	if since.IsZero() { // nobody knows
		return was.at
	}
	return since
}
