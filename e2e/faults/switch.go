package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/e2e/faults/judge"
	"github.com/configstamp/configstamp/e2e/harness"
)

// Pinning are options with pins, and with a collection that is seen in the time of a batch.
func Pinning(o harness.Options) harness.Options {
	o.Webhook = append(slices.Clone(o.Webhook), "--pins")
	o.Controller = append(slices.Clone(o.Controller), "--pins", "--snapshots=1", "--snapshot-grace=10s", "--snapshot-interval=1s")
	return o
}

// podEntry is the name of the webhook that is called for Pods.
const podEntry = "pins.configstamp.dev"

// switched switches pins off, and on again, and returns the templates that this has
// changed (P3).
func (b *Batch) switched(ctx context.Context) ([]string, error) {
	off := b.Options
	drop := func(flags []string) []string {
		return slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return flag == "--pins" || strings.HasPrefix(flag, "--snapshot") })
	}
	off.Webhook, off.Controller = drop(off.Webhook), drop(off.Controller)
	before := map[string]int64{}
	for _, life := range b.lives {
		before[life.Namespace] = life.last()
	}
	entry, err := b.Court.withoutPodEntry(ctx)
	if err != nil {
		return nil, err
	}
	for _, options := range []harness.Options{off, b.Options} {
		if err := b.Court.restart(ctx, options); err != nil {
			return nil, err
		}
		time.Sleep(2 * quiet)
	}
	if err := entry(ctx); err != nil {
		return nil, err
	}
	var found []string
	for _, life := range b.lives {
		if err := b.Court.Witness.CatchUp(ctx, life.Namespace); err != nil {
			return nil, err
		}
		history, _, err := life.History()
		if err != nil {
			return nil, err
		}
		for _, violation := range history.Rewritten(before[life.Namespace]) {
			found = append(found, life.Namespace+": "+violation.String())
		}
	}
	return found, nil
}

// restart restarts the product, which nobody supervises meanwhile.
func (c *Court) restart(ctx context.Context, options harness.Options) error {
	defer c.Alone()()
	defer c.Outages.Begin()()
	return c.Run.Product.Restart(ctx, options)
}

// last is the version of the last event of a namespace.
func (l *Life) last() int64 {
	events, _, err := l.Court.Witness.Events(l.Namespace)
	if err != nil || len(events) == 0 {
		return 0
	}
	return events[len(events)-1].Version
}

// withoutPodEntry takes the entry for Pods away, until back is called.
func (c *Court) withoutPodEntry(ctx context.Context) (back func(context.Context) error, err error) {
	all := c.Run.Dynamic.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"})
	var was []any
	change := func(ctx context.Context, to func(webhooks []any) []any) error {
		configuration, err := all.Get(ctx, "configstamp", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the webhooks: %w", err)
		}
		webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("reading the webhooks: %w", err)
		}
		if err := unstructured.SetNestedSlice(configuration.Object, to(webhooks), "webhooks"); err != nil {
			return fmt.Errorf("changing the webhooks: %w", err)
		}
		if _, err := all.Update(ctx, configuration, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("changing the webhooks: %w", err)
		}
		return nil
	}
	err = change(ctx, func(webhooks []any) []any {
		was = webhooks
		return slices.DeleteFunc(slices.Clone(webhooks), func(webhook any) bool {
			one, ok := webhook.(map[string]any)
			return ok && one["name"] == podEntry
		})
	})
	return func(ctx context.Context) error { return change(ctx, func([]any) []any { return was }) }, err
}

// failedOpen is how often the API server has had no answer in time about a Pod.
func (c *Court) failedOpen(ctx context.Context) (float64, error) {
	text, err := c.Run.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading metrics of the API server: %w", err)
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "apiserver_admission_webhook_fail_open_count{") && strings.Contains(line, strconv.Quote(podEntry)) {
			_, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
			count, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("reading metrics of the API server: %w", err)
			}
			sum += count
		}
	}
	return sum, nil
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
