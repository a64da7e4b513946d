package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// isTurn reports whether an item of the queue asks whose turn it is: no workload
// has no kind.
func (r ref) isTurn() bool { return r.kind == nil }

// takeTurns wakes those whose turn has come, and tells what has become of changes.
func (c *Controller) takeTurns(ctx context.Context) {
	out := c.steps.next(c.options.Clock.Now())
	for _, user := range append(out.granted, out.held...) {
		c.queue.Add(user)
	}
	if out.again > 0 {
		c.queue.AddAfter(ref{}, out.again)
	}
	tell := func(all []news, why checksum.Reason, text func(news, place) string) {
		for _, one := range all {
			about := "" // by whom; else a second halt would be counted up under the words of the first
			if one.by != (ref{}) {
				about = one.by.people()
			}
			for _, at := range one.places {
				c.onSource(ctx, at, why, text(one, at), about)
			}
		}
	}
	c.metrics.halts.Add(float64(len(out.halted)))
	tell(out.halted, checksum.ChangeHalted, func(n news, at place) string {
		return fmt.Sprintf("the change stops, as %s has failed with it: %s. Those that wait keep their pods and checksums; any pod that starts meanwhile reads the new content. "+
			"Put the old content back, or fix it: either way it rolls out by itself. To go on all the same: kubectl annotate --overwrite %s %s configstamp.dev/resume=$(date -u +%%FT%%TZ)", n.by.people(), n.why, at.source.Kind, at.source.Name)
	})
	tell(out.resumed, checksum.ChangeResumed, func(n news, _ place) string {
		return fmt.Sprintf("the change goes on: %s does not halt it any more", n.by.people())
	})
	tell(out.finished, checksum.ChangeRolledOut, func(n news, _ place) string {
		return fmt.Sprintf("the change has rolled out, to %d workloads", n.settled)
	})
}

// resumed is until when failures of a source's change are forgiven.
func (c *Controller) resumed(at place) time.Time {
	content := c.sources.Content(at.namespace, at.source)
	if content == nil {
		return time.Time{}
	}
	return content.Policy.Resumes()
}

// contentOf is what memory holds of a source.
func (c *Controller) contentOf(at place) *checksum.Content {
	return c.sources.Content(at.namespace, at.source)
}
