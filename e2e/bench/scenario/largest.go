package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func largest() Scenario {
	return Scenario{
		Name: "largest", Title: "200,000 Secrets and 50,000 workloads", Asked: true,
		Method: "150,000 Secrets have 2 KiB each, with other content; each Deployment uses a small one of its own, and was stamped when it was created. Then the product is started, one process after the other. " +
			"Peak is the most memory that a process ever held (VmHWM), three seconds after it worked. Then one Secret is edited: until a watch shows another pod template.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			l := &largestCluster{Bench: b, r: r, secrets: b.Size(200_000, 2_000), workloads: b.Size(50_000, 500)}
			if err := l.fill(ctx); err != nil {
				return err
			}
			if err := l.start(ctx); err != nil {
				return err
			}
			return b.Started(ctx, product.Options{Immediate: true}, func() error { return l.edit(ctx) })
		},
	}
}

type largestCluster struct {
	*Bench
	r                  *report.Result
	secrets, workloads int
}

const largestNamespace = "largest"

// name is that of a Secret, and of the Deployment that uses it.
func (*largestCluster) name(i int) string { return fmt.Sprintf("app-%06d", i) }

func (l *largestCluster) fill(ctx context.Context) error {
	if err := l.Product.Namespace(ctx, largestNamespace); err != nil {
		return err
	}
	l.Say("creating %d Secrets", l.secrets)
	if err := l.Secrets(ctx, largestNamespace, 0, l.secrets-l.workloads, 2<<10); err != nil {
		return err
	}
	err := lab.Fill(ctx, l.workloads, func(ctx context.Context, i int) error { return l.Secret(ctx, largestNamespace, l.name(i), "0") })
	if err != nil {
		return err
	}
	return l.Started(ctx, product.Options{}, func() error {
		l.Say("creating %d Deployments", l.workloads)
		err := lab.Fill(ctx, l.workloads, func(ctx context.Context, i int) error {
			return l.Create(ctx, l.Product.Workload(lab.Workload{Namespace: largestNamespace, Name: l.name(i), Sources: []string{"secret/" + l.name(i)}}))
		})
		if err != nil {
			return err
		}
		return l.Product.Work(ctx) // what was missed, if anything, is healed
	})
}

func (l *largestCluster) start(ctx context.Context) error {
	l.Say("starting with all of them")
	peak, ready, err := measureStart(ctx, l.Bench, product.Options{})
	if err != nil {
		return err
	}
	for _, role := range roles(l.Product) {
		l.r.Add(report.One(role+": peak memory of a start", "MiB", peak[role]), report.One(role+": start to ready", "s", ready[role]))
	}
	return nil
}

func (l *largestCluster) edit(ctx context.Context) error {
	templates, err := l.Templates(ctx, largestNamespace)
	if err != nil {
		return err
	}
	defer templates.Stop()
	var took []float64
	for turn := range 5 {
		before, begin := templates.Changes(), time.Now()
		if err := l.Secret(ctx, largestNamespace, l.name(turn), "1"); err != nil {
			return err
		}
		progress, err := templates.Wait(ctx, before, 1, time.Minute)
		if err != nil {
			return err
		}
		took = append(took, 1000*progress.Last.Sub(begin).Seconds())
	}
	l.r.Add(report.New("edit to template", "ms", report.Of(took...)))
	for role, process := range l.Product.Processes() {
		peak, err := process.PeakMiB()
		if err != nil {
			return err
		}
		l.r.Add(report.One(role+": peak memory with a watch of the bench beside it, five edits", "MiB", peak))
	}
	return nil
}
