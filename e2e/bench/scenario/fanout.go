package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

// handClients is how many requests who patches by hand has under way, as many as our
// controller has workers.
const handClients = 16

func fanout() Scenario {
	return Scenario{
		Name: "fanout", Title: "One source, one or many workloads",
		Controllers: workloadControllers(),
		Method: fmt.Sprintf("One ConfigMap is edited that so many Deployments use; from the API server's answer until a watch has shown another pod template of "+
			"each, the product acting at once. By hand: as many PATCHes that change a template, %d at a time, from the first one on, in turns with the product. One workload is measured before all others, "+
			"and beside them. Requests are counted in further rounds, by a proxy.", handClients),
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			f := &fan{Bench: b, r: r}
			return b.Started(ctx, product.Options{Immediate: true}, func() error {
				others := 0
				for _, size := range []int{1, b.Size(50, 20), b.Size(200, 50), b.Size(1000, 300), 1} {
					if err := f.measure(ctx, size, others); err != nil {
						return err
					}
					others += size
				}
				return f.count(ctx)
			})
		},
	}
}

type fan struct {
	*Bench
	r *report.Result
	// rolling has Kubernetes' own controllers make ReplicaSets and Pods.
	rolling bool
}

// patience bounds the wait for one round; some products take minutes.
const patience = 4 * time.Minute

// fill makes a namespace of n workloads that use one ConfigMap.
func (f *fan) fill(ctx context.Context, namespace string, n int) (*lab.Templates, error) {
	if err := f.ConfigMap(ctx, namespace, "shared", "0"); err != nil {
		return nil, err
	}
	err := lab.Fill(ctx, n, func(ctx context.Context, i int) error {
		return f.Create(ctx, f.Product.Workload(lab.Workload{Namespace: namespace, Name: nameOf(i), Sources: []string{"configmap/shared"}, Rolling: f.rolling}))
	})
	if err != nil {
		return nil, err
	}
	return f.Templates(ctx, namespace)
}

func nameOf(i int) string { return fmt.Sprintf("app-%04d", i) }

func (f *fan) measure(ctx context.Context, size, others int) error {
	what := fmt.Sprintf("%d workloads beside %d", size, others)
	f.Say("%s", what)
	ours, hand := fmt.Sprintf("fanout-%d-%d", others, size), fmt.Sprintf("by-hand-%d-%d", others, size)
	if err := errors.Join(f.Product.Namespace(ctx, ours), f.Namespace(ctx, hand, nil)); err != nil {
		return err
	}
	watched, err := f.fill(ctx, ours, size)
	if err != nil {
		return err
	}
	defer watched.Stop()
	watchedByHand, err := f.fill(ctx, hand, size)
	if err != nil {
		return err
	}
	defer watchedByHand.Stop()
	raw, err := f.Raw()
	if err != nil {
		return err
	}
	rounds := f.Size(7, 3)
	if size == 1 {
		rounds = f.Size(50, 10)
	}
	var seconds, byHand []float64
	spent := map[string][]float64{}
	for round := range rounds {
		if round >= 3 && report.Mean(seconds) > 20 {
			f.r.Skip("%s: %d of %d rounds, at more than 20 s each", what, rounds-round, rounds)
			break
		}
		begin := time.Now()
		err := f.round(ctx, watchedByHand, size, func() error {
			body := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"example.com/checksum":"%d"}}}}}`, round)
			return lab.Together(ctx, handClients, size, func(ctx context.Context, i int) error {
				_, _, err := raw.Do(ctx, "PATCH", path(hand, nameOf(i)), "application/merge-patch+json", body)
				return err
			})
		}, func(last time.Time) { byHand = append(byHand, last.Sub(begin).Seconds()) })
		if err != nil {
			return err
		}
		cpu, err := f.Spent(func() error {
			return f.round(ctx, watched, size, func() error {
				err := f.Edit(ctx, ours, "shared", fmt.Sprint(round+1))
				begin = time.Now()
				return err
			}, func(last time.Time) { seconds = append(seconds, last.Sub(begin).Seconds()) })
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.r.Skip("%s: %v; no more rounds", what, err)
			break
		}
		for role := range cpu {
			spent[role] = append(spent[role], cpu[role]/float64(size))
		}
	}
	f.r.Add(what+": until the last template", "s", seconds...)
	f.r.Add(what+": the same by hand", "s", byHand...)
	for _, role := range roles(f.Product) {
		f.r.Add(fmt.Sprintf("%s: CPU of the %s for each", what, role), "ms", spent[role]...)
	}
	return nil
}

// round has something happen, tells when the last of all templates was seen to have
// changed, and waits until the aftermath is over.
func (f *fan) round(ctx context.Context, templates *lab.Templates, size int, act func() error, seen func(last time.Time)) error {
	before := templates.Changes()
	if err := act(); err != nil {
		return err
	}
	progress, err := templates.Wait(ctx, before, size, patience)
	if err != nil {
		return err
	}
	seen(progress.Last)
	return lab.Pause(ctx, time.Second)
}

// count restarts the product behind proxies and counts what a change costs.
func (f *fan) count(ctx context.Context) error {
	const namespace = "fanout-counted"
	size := f.Size(200, 50)
	if err := f.Product.Stop(); err != nil {
		return err
	}
	if err := f.Product.Start(ctx, product.Options{Immediate: true, Counted: true}); err != nil {
		return err
	}
	if err := f.Product.Namespace(ctx, namespace); err != nil {
		return err
	}
	templates, err := f.fill(ctx, namespace, size)
	if err != nil {
		return err
	}
	defer templates.Stop()
	var deployments, all []float64
	var last product.Counts
	for round := range f.Size(3, 2) {
		if err := lab.Pause(ctx, 2*time.Second); err != nil {
			return err
		}
		before := f.Product.Counter.Counts()
		err := f.round(ctx, templates, size, func() error { return f.Edit(ctx, namespace, "shared", fmt.Sprint(round+1)) }, func(time.Time) {})
		if err != nil {
			f.r.Skip("requests for each workload: %v", err)
			return ctx.Err()
		}
		last = f.Product.Counter.Since(before).Work()
		deployments = append(deployments, float64(last.Of("deployments"))/float64(size))
		all = append(all, float64(last.Sum())/float64(size))
	}
	f.r.AddNoted("requests on a Deployment, for each workload", "requests", fmt.Sprintf("the last round with %d workloads: %s", size, last), deployments...)
	f.r.Add("all requests, for each workload", "requests", all...)
	return nil
}
