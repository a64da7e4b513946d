package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// findingsEvery is how often Namespaces and sources are gone through, whose admissions we do not see.
const findingsEvery = 5 * time.Second

// remarks are texts about a Namespace (its name alone) or a source, one for each event.
type remarks map[remark]string

type remark struct {
	about rollout.SourceRef
	why   reason.Reason // the first of those with its event
}

// add notes findings about one thing: one text for each event.
func (r remarks) add(about rollout.SourceRef, found []checksum.Finding) {
	for why, text := range checksum.ByEvent(found) {
		r[remark{about, why}] = text
	}
}

// tellNewFindings tells people of settings that cannot be read, and the like: of each once, until
// it changes.
func (c *Controller) tellNewFindings(ctx context.Context, told remarks) {
	defer c.caught(klog.FromContext(ctx), inFindings, "Reporting on Namespaces and sources panicked", func() {})
	found := c.findings()
	for at, text := range found {
		if told[at] == text {
			continue
		}
		told[at] = text
		c.onSource(at.about, at.why, text, "")
	}
	maps.DeleteFunc(told, func(at remark, _ string) bool { return found[at] == "" })
}

// findings are what is to be told now.
func (c *Controller) findings() remarks {
	found := remarks{}
	c.namespaces.Each(func(name string, says checksum.Namespace) {
		if !says.Ending {
			found.add(rollout.SourceRef{Namespace: name}, says.Findings)
		}
	})
	c.sources.Findings(func(namespace string, source checksum.Source, findings []checksum.Finding) {
		findings = slices.DeleteFunc(slices.Clone(findings), func(f checksum.Finding) bool {
			return f.Reason == reason.MadeAnew && !slices.ContainsFunc(c.index.Using(namespace, source), func(ref workload.Ref) bool {
				_, served := c.PolicyOf([]workload.Ref{ref})
				return served
			})
		})
		found.add(rollout.SourceRef{Namespace: namespace, Source: source}, findings)
	})
	return found
}

// tellStale emits an event for each workload that an undo has kept on older content for a day, and again each
// day.
func (c *Controller) tellStale(ctx context.Context) {
	defer c.caught(klog.FromContext(ctx), inFindings, "Reporting old content panicked", func() {})
	for _, stale := range c.waits.Older.Due(c.options.Clock.Now()) {
		if s := c.index.Get(stale.Workload); s != nil {
			(&look{Controller: c, ref: stale.Workload, s: s}).say(reason.StaleByUndo, fmt.Sprintf("%s %s ago, and an undo keeps this workload on older content; a new certificate or password may be waiting. "+
				"To take what is there now: %s", changed(stale.Declined), duration.HumanDuration(c.options.Clock.Since(stale.Since)), accept(stale.Workload)), stale.Declined...)
		}
	}
}
