package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

// secretBytes is the size of each of the Secrets that idle fills a cluster with.
const secretBytes = 20 << 10

func idle() Scenario {
	const span = 20 * time.Second
	return Scenario{
		Name: "idle", Title: "Memory, CPU and requests at rest, and the peak of a start",
		Method: "In an empty cluster, then with 10,000 Secrets of 20 KiB, each with other content. Start to ready: of each process, all started at once. " +
			"Peak is the most memory that a process ever held (VmHWM), three seconds after all worked; at rest is what it holds then (VmRSS), after " + span.String() +
			" more, and the CPU time that it took in those. Requests, of a start and at rest, are counted by a proxy in one more round.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			q := &quiet{Bench: b, r: r, span: span}
			if err := q.rounds(ctx, "empty cluster"); err != nil {
				return err
			}
			const namespace = "filled"
			secrets := b.Size(10_000, 1_000)
			if err := b.Product.Namespace(ctx, namespace); err != nil {
				return err
			}
			b.Say("creating %d Secrets of %d bytes", secrets, secretBytes)
			if err := b.Secrets(ctx, namespace, secrets, secretBytes); err != nil {
				return err
			}
			return q.rounds(ctx, fmt.Sprintf("%d Secrets", secrets))
		},
	}
}

type quiet struct {
	*Bench
	r    *report.Result
	span time.Duration
}

// rounds start the product again and again, in what the cluster holds.
func (q *quiet) rounds(ctx context.Context, where string) error {
	measured := map[string]map[string][]float64{}
	for round := range q.Size(3, 1) {
		q.Say("%s, round %d", where, round+1)
		err := q.Started(ctx, product.Options{}, func() error { return q.round(ctx, measured) })
		if err != nil {
			return err
		}
	}
	for _, figure := range []struct{ what, unit string }{{"start to ready", "s"}, {"peak memory of a start", "MiB"}, {"memory at rest", "MiB"}, {"CPU at rest in " + q.span.String(), "ms"}} {
		for _, role := range roles(q.Product) {
			q.r.Add(fmt.Sprintf("%s, %s: %s", where, role, figure.what), figure.unit, measured[figure.what][role]...)
		}
	}
	q.Say("%s, counting requests", where)
	before := q.Product.Counter.Counts()
	return q.Started(ctx, product.Options{Counted: true}, func() error {
		start, begun := q.Product.Counter.Since(before), q.Product.Counter.Counts()
		if err := lab.Pause(ctx, q.span); err != nil {
			return err
		}
		rest := q.Product.Counter.Since(begun)
		q.r.AddNoted(where+": requests of a start", "requests", start.String(), float64(start.Sum()))
		q.r.AddNoted(where+": requests at rest in "+q.span.String(), "requests", rest.String(), float64(rest.Sum()))
		return nil
	})
}

// round adds what the product, which has just been started, has taken, and takes at rest.
func (q *quiet) round(ctx context.Context, measured map[string]map[string][]float64) error {
	add := func(what, role string, value float64) {
		if measured[what] == nil {
			measured[what] = map[string][]float64{}
		}
		measured[what][role] = append(measured[what][role], value)
	}
	for role, after := range q.Product.Ready() {
		add("start to ready", role, after.Seconds())
	}
	if err := lab.Pause(ctx, 3*time.Second); err != nil {
		return err
	}
	for role, process := range q.Product.Processes() {
		peak, err := process.PeakMiB()
		if err != nil {
			return err
		}
		add("peak memory of a start", role, peak)
	}
	spent, err := q.Spent(func() error { return lab.Pause(ctx, q.span) })
	if err != nil {
		return err
	}
	for role, process := range q.Product.Processes() {
		resting, err := process.MiB()
		if err != nil {
			return err
		}
		add("memory at rest", role, resting)
		add("CPU at rest in "+q.span.String(), role, spent[role])
	}
	return nil
}
