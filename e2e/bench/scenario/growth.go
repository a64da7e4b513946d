package scenario

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func growth() Scenario {
	return Scenario{
		Name: "growth", Title: "How cost grows",
		Method: "Peak memory and the time from start to ready, each of one start: with 1,000 Secrets of growing size, with a growing number of Secrets of 2 KiB, " +
			"and with a growing number of workloads beside them.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			g := &grown{Bench: b, r: r, curves: map[string]*report.Curve{}}
			for _, step := range []func(context.Context) error{g.size, g.number, g.users} {
				if err := step(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

type grown struct {
	*Bench
	r      *report.Result
	curves map[string]*report.Curve
}

// point starts the product and adds what that cost to the curves of an x.
func (g *grown) point(ctx context.Context, x string, value float64) error {
	g.Say("%s: %.0f", x, value)
	peak, ready, err := measureStart(ctx, g.Bench, product.Options{})
	if err != nil {
		return err
	}
	for _, role := range roles(g.Product) {
		g.curve(role+": peak memory by "+x, x, "MiB").Add(value, peak[role])
		g.curve(role+": start to ready by "+x, x, "s").Add(value, ready[role])
	}
	return nil
}

func (g *grown) curve(name, x, y string) *report.Curve {
	if g.curves[name] == nil {
		g.curves[name] = &report.Curve{Name: name, X: x, Y: y}
		g.r.Curves = append(g.r.Curves, g.curves[name])
	}
	return g.curves[name]
}

func (g *grown) size(ctx context.Context) error {
	const namespace = "growth-size"
	if err := g.Product.Namespace(ctx, namespace); err != nil {
		return err
	}
	for _, bytes := range []int{1 << 10, 4 << 10, 16 << 10, 64 << 10} {
		if err := g.Secrets(ctx, namespace, 0, g.Size(1000, 100), bytes); err != nil {
			return err
		}
		if err := g.point(ctx, "bytes of a Secret", float64(bytes)); err != nil {
			return err
		}
		if err := g.Client.CoreV1().Secrets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("deleting the Secrets of %s: %w", namespace, err)
		}
	}
	return nil
}

func (g *grown) number(ctx context.Context) error {
	const namespace = "growth-number"
	if err := g.Product.Namespace(ctx, namespace); err != nil {
		return err
	}
	from := 0
	for _, n := range []int{1000, 3000, 10_000, 30_000} {
		n /= g.Size(1, 10)
		if err := g.Secrets(ctx, namespace, from, n, 2<<10); err != nil {
			return err
		}
		from = n
		if err := g.point(ctx, "number of Secrets", float64(n)); err != nil {
			return err
		}
	}
	return nil
}

func (g *grown) users(ctx context.Context) error {
	const namespace = "growth-number"
	from := 0
	for _, n := range []int{500, 1500, 5000} {
		n /= g.Size(1, 10)
		err := g.Started(ctx, product.Options{}, func() error {
			return lab.Fill(ctx, n-from, func(ctx context.Context, i int) error {
				name := fmt.Sprintf("%06d", from+i)
				return g.Create(ctx, g.Product.Workload(lab.Workload{Namespace: namespace, Name: "app-" + name, Sources: []string{"secret/secret-" + name}}))
			})
		})
		if err != nil {
			return err
		}
		from = n
		if err := g.point(ctx, "number of workloads", float64(n)); err != nil {
			return err
		}
	}
	return nil
}
