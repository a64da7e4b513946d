package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
)

const (
	// standingEvery is how often what waits is gone through.
	standingEvery = time.Minute
	// mostLogged is how many workloads one line of the log names.
	mostLogged = 100
)

// tellStanding tells of what still waits: many workloads at once, in one line of the log, and
// every half hour in one event on the source or Namespace.
func (c *Controller) tellStanding(ctx context.Context) {
	defer c.caught(klog.FromContext(ctx), inRemind, "Reminding people of what waits panicked", func() {})
	for _, stands := range c.waits.Standing(c.options.Clock.Now()) {
		names, source := make([]string, len(stands.Workloads)), "" // the Namespace itself
		for i, ref := range stands.Workloads {
			names[i] = ref.People()
		}
		if stands.About.Source != (checksum.Source{}) {
			source = stands.About.Source.String()
		}
		klog.FromContext(ctx).Info("Workloads wait", "why", stands.Why.Label(), "namespace", stands.About.Namespace, "source", source,
			"workloads", len(names), "since", stands.Since.UTC().Format(time.RFC3339), "names", names[:min(len(names), mostLogged)], "first", stands.Text)
		if stands.Again {
			c.tellAgain(&stands, names)
		}
	}
	for _, stale := range c.waits.Older.Due(c.options.Clock.Now()) {
		if s := c.index.Get(stale.Workload); s != nil {
			_, accept := rollout.Failure{}.Advice(stale.Workload)
			(&look{Controller: c, ref: stale.Workload, s: s}).say(reason.StaleByUndo, fmt.Sprintf("%s %s ago, and an undo keeps this workload on older content; a new certificate or password may be waiting. "+
				"To take what is there now: %s", changed(stale.Declined), duration.HumanDuration(c.options.Clock.Since(stale.Since)), accept), stale.Declined...)
		}
	}
}

func (c *Controller) tellAgain(stands *waiting.Standing, names []string) {
	many := "1 workload is"
	if len(names) > 1 {
		many = fmt.Sprintf("%d workloads are", len(names))
	}
	text := fmt.Sprintf("%s waiting, the first for %s: %s. The event on %s said: %s", many,
		duration.HumanDuration(c.options.Clock.Since(stands.Since)), joined(names), names[0], stands.Text)
	why := stands.Why
	if why == reason.Halted { // on a source
		why = reason.ChangeHalted
	}
	c.onSource(stands.About, why, text, "")
}
