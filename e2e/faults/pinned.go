package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Pinning are options with pins, and with a collection that is seen in the time of a batch.
func Pinning(o harness.Options) harness.Options {
	o.Webhook = append(slices.Clone(o.Webhook), "--pins")
	o.Controller = append(slices.Clone(o.Controller), "--pins", "--snapshots=1", "--snapshot-grace=10s")
	return o
}

// podEntry is the name of the webhook that is called for Pods.
const podEntry = "pins.configstamp.dev"

// failedOpen is how often the API server has had no answer in time about a Pod.
func (c *Court) failedOpen(ctx context.Context) (float64, error) {
	text, err := c.Run.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading metrics of the API server: %w", err)
	}
	return harness.SumOf(harness.ParseMetrics(string(text)), "apiserver_admission_webhook_fail_open_count", strconv.Quote(podEntry)), nil
}

// pinned adds up what pins have come to in a namespace, and keeps the Pods of it that are
// not pinned.
func (b *Batch) pinned(life *Life) error {
	history, _, err := life.History()
	if err != nil {
		return err
	}
	counts, unpinned := history.Pins()
	b.counts.Add(counts)
	for _, one := range unpinned {
		b.unpinned = append(b.unpinned, judge.Violation{Invariant: one.Invariant, Object: life.Namespace + " " + one.Object, Version: one.Version, Text: one.Text})
	}
	return nil
}

// unanswered tells of Pods that are not pinned if they are more than there were calls
// without an answer in time.
func (b *Batch) unanswered(ctx context.Context) ([]string, error) {
	after, err := b.Court.failedOpen(ctx)
	if err != nil || float64(len(b.unpinned)) <= after-b.failedOpen {
		return nil, err
	}
	return []string{fmt.Sprintf("%d Pods are not pinned, and the API server had no answer in time only %v times: %v", len(b.unpinned), after-b.failedOpen, b.unpinned)}, nil
}
