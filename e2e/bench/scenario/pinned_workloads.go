package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func pinnedWorkloads() Scenario {
	return Scenario{
		Name: "pins-workloads", Title: "The admission of a Deployment that is pinned",
		Controllers: workloadControllers(),
		Method: "Creations of a Deployment whose ConfigMaps hold content that is new, and of another one that uses the same ConfigMaps. A proxy counts the webhook's requests, and hands each answer " +
			"on 50 ms later than it comes: what a creation takes longer, in units of 50 ms, is how many round trips the webhook makes one after the other.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			p := &pinnedCreations{Bench: b, r: r}
			return b.pinning(ctx, r, product.Options{Counted: true, Delay: roundTrip}, func() error { return p.measure(ctx) })
		},
	}
}

// roundTrip is how much later than it comes the webhook gets an answer.
const roundTrip = 50 * time.Millisecond

type pinnedCreations struct {
	*Bench
	r    *report.Result
	made int
}

const (
	pinnedCreated   = "pins-created"
	unpinnedCreated = "pins-created-without"
)

func (p *pinnedCreations) measure(ctx context.Context) error {
	if err := p.pinningNamespace(ctx, pinnedCreated); err != nil {
		return err
	}
	if err := p.Product.Namespace(ctx, unpinnedCreated); err != nil {
		return err
	}
	if _, err := p.pinnedDeployment(ctx, pinnedCreated, 1); err != nil {
		return err
	}
	for _, sources := range []int{1, 4, 10} {
		if err := p.row(ctx, sources); err != nil {
			return err
		}
	}
	return nil
}

// row creates Deployments that use so many ConfigMaps, whose content is new, and known.
func (p *pinnedCreations) row(ctx context.Context, sources int) error {
	took, requests := map[string][]float64{}, map[string][]float64{}
	for range p.Size(20, 3) {
		for _, way := range []struct{ name, namespace string }{{"not pinned", unpinnedCreated}, {"new", pinnedCreated}} {
			p.made++
			w := lab.Workload{Namespace: way.namespace, Name: fmt.Sprintf("app-%04d", p.made)}
			for i := range sources {
				name := fmt.Sprintf("%s-%d", w.Name, i)
				w.Sources = append(w.Sources, "configmap/"+name)
				if err := p.ConfigMap(ctx, way.namespace, name, fmt.Sprintf("%d of %d", i, p.made)); err != nil {
					return err
				}
			}
			if err := lab.Pause(ctx, 4*roundTrip); err != nil { // the watches tell of the ConfigMaps
				return err
			}
			names := []string{way.name}
			if way.name == "new" {
				names = append(names, "known")
			}
			for _, name := range names {
				elapsed, asked, err := p.create(ctx, w, name != "not pinned")
				if err != nil {
					return err
				}
				took[name], requests[name] = append(took[name], elapsed), append(requests[name], asked)
				w.Name += "-too"
			}
		}
	}
	const than = "of a creation that is not pinned"
	what := fmt.Sprintf("ConfigMaps: %d", sources)
	trips := func(name string) report.Spread {
		more := report.Differences(took[name], took["not pinned"])
		for i := range more {
			more[i] /= roundTrip.Seconds()
		}
		return report.Of(more...)
	}
	p.r.Add(
		report.New(what+", content is new: requests of the webhook", "requests", report.Of(requests["new"]...)).Over(than, report.Of(requests["not pinned"]...)),
		report.New(what+", content is known: requests of the webhook", "requests", report.Of(requests["known"]...)).Over(than, report.Of(requests["not pinned"]...)).AtMost(report.Ratio, 1),
		report.New(what+", content is new: more round trips, one after the other", "round trips", trips("new")).AtMost(report.P50, 2.5),
		report.New(what+", content is known: more round trips, one after the other", "round trips", trips("known")).AtMost(report.P50, 0.5),
	)
	return nil
}

// create tells how long it took, in seconds, and how many requests the webhook made.
func (p *pinnedCreations) create(ctx context.Context, w lab.Workload, pinned bool) (took, requests float64, err error) {
	before, begin := p.Product.Counter.Counts(), time.Now()
	d, err := p.Client.AppsV1().Deployments(w.Namespace).Create(ctx, w.Deployment(), metav1.CreateOptions{})
	if err != nil {
		return 0, 0, fmt.Errorf("creating a Deployment: %w", err)
	}
	took = time.Since(begin).Seconds()
	pins, err := checksum.ParsePins(d.Spec.Template.Annotations[checksum.PinsAnnotation])
	if pinned && len(pins) != len(w.Sources) {
		return 0, 0, fmt.Errorf("%d of the %d ConfigMaps of %s are pinned: %w", len(pins), len(w.Sources), w.Name, err)
	}
	for what, count := range p.Product.Counter.Since(before).Work() {
		if strings.HasPrefix(what, "webhook ") && strings.HasSuffix(what, " configmaps") {
			requests += float64(count)
		}
	}
	return took, requests, nil
}
