package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func unused() Scenario {
	return Scenario{
		Name: "unused", Title: "A change that nobody uses",
		Controllers: workloadControllers(),
		Method: "100 edits of a ConfigMap that no workload references, in a namespace with 1,000 workloads that the product cares for, the product acting at once. " +
			"Proxies count what its processes ask of the API server, without the leader's lease and watches that are opened again. " +
			"Floor: the same time without edits.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			return b.Started(ctx, product.Options{Immediate: true, Counted: true}, func() error { return unusedEdits(ctx, b, r) })
		},
	}
}

func unusedEdits(ctx context.Context, b *Bench, r *report.Result) error {
	const namespace = "unused"
	if err := b.Product.Namespace(ctx, namespace); err != nil {
		return err
	}
	if err := b.Others(ctx, namespace, b.Size(1000, 100)); err != nil {
		return err
	}
	if err := b.ConfigMap(ctx, namespace, "nobodys", "0"); err != nil {
		return err
	}
	if err := lab.Pause(ctx, 5*time.Second); err != nil { // what the creations caused is over
		return err
	}
	const rest = 5 * time.Second
	window := func(act func() error) (product.Counts, map[string]float64, time.Duration, error) {
		cpu, err := cpuOf(b.Product)
		if err != nil {
			return nil, nil, 0, err
		}
		counts, begin := b.Product.Counter.Counts(), time.Now()
		if err := act(); err != nil {
			return nil, nil, 0, err
		}
		if err := lab.Pause(ctx, rest); err != nil {
			return nil, nil, 0, err
		}
		spent, err := cpuSince(b.Product, cpu)
		return b.Product.Counter.Since(counts), spent, time.Since(begin), err
	}
	edits := b.Size(100, 20)
	b.Say("editing")
	busy, spent, took, err := window(func() error {
		for i := range edits {
			if err := b.Edit(ctx, namespace, "nobodys", fmt.Sprint(i+1)); err != nil {
				return err
			}
			if err := lab.Pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	idle, idleSpent, _, err := window(func() error { return lab.Pause(ctx, took-rest) })
	if err != nil {
		return err
	}
	r.Add(report.One(fmt.Sprintf("requests for %d edits", edits), "requests", float64(busy.Work().Sum())).
		Over("the same time without edits", report.Of(float64(idle.Work().Sum()))).
		AtMost(report.Max, 0).Saying("%s", busy.Work()))
	for role, seconds := range spent {
		r.Add(report.One(fmt.Sprintf("CPU of the %s for %d edits", role, edits), "s", seconds).
			Over("the same time without edits", report.Of(idleSpent[role])))
	}
	return nil
}

// cpuOf is what each process has spent so far, in seconds.
func cpuOf(installation *product.Installation) (map[string]float64, error) {
	spent := map[string]float64{}
	for role, process := range installation.Processes() {
		seconds, err := process.CPU()
		if err != nil {
			return nil, err
		}
		spent[role] = seconds
	}
	return spent, nil
}

func cpuSince(installation *product.Installation, before map[string]float64) (map[string]float64, error) {
	now, err := cpuOf(installation)
	for role := range now {
		now[role] -= before[role]
	}
	return now, err
}
