package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

// fanoutClients is how many requests the floor has under way, as many as our
// controller has workers.
const fanoutClients = 16

func fanout() Scenario {
	return Scenario{
		Name: "fanout", Title: "One source, many workloads",
		Controllers: workloadControllers(),
		Method: fmt.Sprintf("One ConfigMap is edited that many Deployments use; from the API server's answer until a watch has shown another pod template of "+
			"each, the product acting at once. Floor: the same number of empty patches, %d at a time, through a webhook that decodes nothing and adds one "+
			"annotation to the template. Rates are workloads per second. Requests are counted in further rounds, by a proxy.", fanoutClients),
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			floor, err := b.AnnotatingFloor()
			if err != nil {
				return err
			}
			defer floor.Close()
			f := &fan{Bench: b, r: r, floor: floor}
			if f.raw, err = b.Raw(); err != nil {
				return err
			}
			return b.Started(ctx, product.Options{Immediate: true}, func() error {
				for _, size := range []int{50, 200, f.largest()} {
					if err := f.measure(ctx, size); err != nil {
						return err
					}
				}
				return f.count(ctx)
			})
		},
	}
}

type fan struct {
	*Bench
	r     *report.Result
	raw   *lab.Raw
	floor *lab.Floor
	// rolling has Kubernetes' own controllers make ReplicaSets and Pods.
	rolling bool
}

func (f *fan) largest() int { return f.Size(1000, 300) }

// patience bounds the wait for one round; some products take minutes.
func (f *fan) patience() time.Duration { return f.Span(4*time.Minute, time.Minute) }

// fill makes a namespace of n workloads that use one ConfigMap.
func (f *fan) fill(ctx context.Context, namespace string, n int) (*lab.Templates, error) {
	if err := f.ConfigMap(ctx, namespace, "shared", "0"); err != nil {
		return nil, err
	}
	err := lab.Fill(ctx, n, func(ctx context.Context, i int) error {
		return f.Create(ctx, f.Product.Workload(lab.Workload{Namespace: namespace, Name: fmt.Sprintf("app-%04d", i), Sources: []string{"configmap/shared"}, Rolling: f.rolling}))
	})
	if err != nil {
		return nil, err
	}
	return f.Templates(ctx, namespace)
}

func (f *fan) measure(ctx context.Context, size int) error {
	f.Say("%d workloads", size)
	ours, floor := fmt.Sprintf("fanout-%d", size), fmt.Sprintf("fanout-%d-floor", size)
	if err := f.Product.Namespace(ctx, ours); err != nil {
		return err
	}
	if err := f.Namespace(ctx, floor, nil); err != nil {
		return err
	}
	watches := map[string]*lab.Templates{}
	for _, namespace := range []string{ours, floor} {
		templates, err := f.fill(ctx, namespace, size)
		if err != nil {
			return err
		}
		defer templates.Stop()
		watches[namespace] = templates
	}
	if err := f.Serve(ctx, f.floor, floor); err != nil {
		return err
	}
	rates, seconds := map[string][]float64{}, []float64{}
	spent := map[string][]float64{}
	for round := range f.Size(7, 3) {
		if report.Of(seconds...).Mean > 20 && round >= 3 {
			f.r.Skip("%d workloads: %d of %d rounds, at more than 20 s each", size, f.Size(7, 3)-round, f.Size(7, 3))
			break
		}
		for _, namespace := range []string{floor, ours} {
			if err := lab.Pause(ctx, time.Second); err != nil { // the last round's aftermath is over
				return err
			}
			act := func() error { return f.Edit(ctx, ours, "shared", fmt.Sprint(round+1)) }
			if namespace == floor {
				act = func() error { return f.patches(ctx, floor, size) }
			}
			cpu, err := cpuOf(f.Product)
			if err != nil {
				return err
			}
			took, changed, err := f.round(ctx, watches[namespace], size, namespace == floor, act)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				f.r.Skip("%s: %v; no more rounds", namespace, err)
			}
			rates[namespace] = append(rates[namespace], float64(changed)/took.Seconds())
			if err != nil {
				f.figures(size, rates[ours], rates[floor], seconds)
				return nil
			}
			if namespace == ours {
				seconds = append(seconds, took.Seconds())
				if cpu, err = cpuSince(f.Product, cpu); err != nil {
					return err
				}
				for role := range cpu {
					spent[role] = append(spent[role], 1000*cpu[role]/float64(size))
				}
			}
		}
	}
	f.figures(size, rates[ours], rates[floor], seconds)
	for _, role := range roles(f.Product) {
		f.r.Add(report.New(fmt.Sprintf("%d workloads: CPU of the %s for each", size, role), "ms", report.Of(spent[role]...)))
	}
	return nil
}

// round has something happen and waits until every template has changed. Of the
// floor the time begins with the act, of a product when an edit was answered.
func (f *fan) round(ctx context.Context, templates *lab.Templates, size int, fromBegin bool, act func() error) (time.Duration, int, error) {
	before := templates.Changes()
	begin := time.Now()
	if err := act(); err != nil {
		return 0, 0, err
	}
	if !fromBegin {
		begin = time.Now()
	}
	progress, err := templates.Wait(ctx, before, size, f.patience())
	if err != nil {
		return f.patience(), progress.Changed, err
	}
	return progress.Last.Sub(begin), progress.Changed, nil
}

func (f *fan) patches(ctx context.Context, namespace string, n int) error {
	return lab.Together(ctx, fanoutClients, n, func(ctx context.Context, i int) error {
		return f.patch(ctx, namespace, i)
	})
}

// patch sends an empty patch to Deployment number i.
func (f *fan) patch(ctx context.Context, namespace string, i int) error {
	_, _, err := f.raw.Do(ctx, "PATCH", path(namespace, fmt.Sprintf("app-%04d", i))+"?fieldManager=bench", mergeType, []byte("{}"))
	return err
}

func (f *fan) figures(size int, ours, floor, seconds []float64) {
	least := 0.8
	if size == f.largest() {
		least = 0.85
	}
	f.r.Add(
		report.New(fmt.Sprintf("%d workloads: rate", size), "1/s", report.Of(ours...)).
			Over(fmt.Sprintf("empty patches, %d at a time, through a webhook that adds one annotation", fanoutClients), report.Of(floor...)).
			AtLeast(report.Ratio, least),
		report.New(fmt.Sprintf("%d workloads: until the last", size), "s", report.Of(seconds...)),
	)
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
	var perWorkload, all []float64
	var last product.Counts
	for round := range f.Size(3, 2) {
		if err := lab.Pause(ctx, 2*time.Second); err != nil {
			return err
		}
		before, changes := f.Product.Counter.Counts(), templates.Changes()
		if err := f.Edit(ctx, namespace, "shared", fmt.Sprint(round+1)); err != nil {
			return err
		}
		if _, err := templates.Wait(ctx, changes, size, f.patience()); err != nil {
			f.r.Skip("requests per workload: %v", err)
			return ctx.Err()
		}
		if err := lab.Pause(ctx, time.Second); err != nil { // what is sent afterwards counts too
			return err
		}
		last = f.Product.Counter.Since(before)
		perWorkload = append(perWorkload, float64(sumOf(last, " deployments"))/float64(size))
		all = append(all, float64(last.Work().Sum())/float64(size))
	}
	f.r.Add(
		report.New("requests on a Deployment, for each workload", "requests", report.Of(perWorkload...)).AtMost(report.Max, 1).
			Saying("the last round with %d workloads: %s", size, last.Work()),
		report.New("all requests, for each workload", "requests", report.Of(all...)),
	)
	return nil
}

// sumOf adds up the requests for one resource.
func sumOf(counts product.Counts, resource string) int {
	work := counts.Work()
	return work.Sum() - work.Without(resource).Sum()
}
