package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/workload"
)

const (
	// standingEvery is how often what waits is gone through.
	standingEvery = time.Minute
	// mostLogged is how many workloads one line of the log names.
	mostLogged = 100
)

// remind tells of what still waits, until ctx ends: many workloads at once, in one line of
// the log, and every half hour in one event on the source or Namespace.
func (c *Controller) remind(ctx context.Context) {
	ticker := c.options.Clock.NewTicker(standingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.tellStanding(ctx)
		}
	}
}

func (c *Controller) tellStanding(ctx context.Context) {
	defer c.caught(klog.FromContext(ctx), inRemind, "Reminding people of what waits panicked", func() {})
	words := func(ref workload.Ref, why checksum.Reason) string { return c.told.text(subject{workload: ref}, why) }
	for _, stands := range c.waits.Standing(words, c.options.Clock.Now()) {
		c.logStanding(ctx, &stands)
		if stands.Again {
			c.tellAgain(ctx, &stands)
		}
	}
	for _, stale := range c.waits.Older.Due(c.options.Clock.Now()) {
		if s := c.index.Get(stale.Workload); s != nil {
			c.say(stale.Workload, s, checksum.StaleByUndo, fmt.Sprintf("%s %s ago, and an undo keeps this workload on older content; a new certificate or password may be waiting. "+
				"To take what is there now: %s", changed(stale.Declined), duration.HumanDuration(c.options.Clock.Since(stale.Since)), accepts(stale.Workload)), stale.Declined...)
		}
	}
}

func (c *Controller) logStanding(ctx context.Context, stands *waiting.Standing) {
	names := make([]string, min(len(stands.Workloads), mostLogged))
	for i := range names {
		names[i] = stands.Workloads[i].People()
	}
	source := "" // the Namespace itself
	if stands.About.Source != (checksum.Source{}) {
		source = stands.About.Source.String()
	}
	klog.FromContext(ctx).Info("Workloads wait", "why", stands.Why.Label(), "namespace", stands.About.Namespace, "source", source,
		"workloads", len(stands.Workloads), "since", stands.Since.UTC().Format(time.RFC3339), "names", names, "first", stands.Text)
}

func (c *Controller) tellAgain(ctx context.Context, stands *waiting.Standing) {
	names := make([]string, len(stands.Workloads))
	for i, ref := range stands.Workloads {
		names[i] = ref.People()
	}
	many := "1 workload is"
	if len(names) > 1 {
		many = fmt.Sprintf("%d workloads are", len(names))
	}
	text := fmt.Sprintf("%s waiting, the first for %s: %s. The event on %s said: %s", many,
		duration.HumanDuration(c.options.Clock.Since(stands.Since)), joined(names), names[0], stands.Text)
	why := stands.Why
	if why == checksum.Halted { // on a source
		why = checksum.ChangeHalted
	}
	if stands.About.Source == (checksum.Source{}) {
		c.tell(namespaceRef(stands.About.Namespace), nil, why, text)
		return
	}
	c.onSource(ctx, stands.About, why, text, "")
}
