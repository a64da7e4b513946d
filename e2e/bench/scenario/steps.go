package scenario

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func steps() Scenario {
	return Scenario{
		Name: "steps", Title: "One source, very many workloads, in growing steps", Asked: true,
		Cluster: func(b *Bench) lab.Wanted {
			f := b.fleet()
			patience := f.inTheory(f.Workloads, f.width(), func(int) time.Duration { return 5 * time.Second })
			return lab.Wanted{Controllers: workloadControllers(), Nodes: max(10, f.Workloads/500), Lifetime: time.Hour + 2*patience}
		},
		Method: "Many Deployments of one replica read one ConfigMap, or one of the same name and content in each namespace; kwok plays their nodes. Before the edit the product " +
			"is started anew. The ConfigMap is edited once, by one client, and a watch tells when each Deployment begins to roll and when it is done. Floor: Deployments of the same " +
			"cluster that the product does not care for, rolled by hand in batches of 1, 2, 4 and so on up to what may roll at once. In theory the fleet takes the settle time, " +
			"what each batch took by hand, and a soak between batches. At the same moment two further ConfigMaps are edited, in aa-prod and zz-prod, that three Deployments each read. " +
			"CPU is that of windows of 10 s.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if !b.Given.Adapter.Steps {
				r.Skip("%s cannot roll in steps", b.Given.Adapter.Name)
				return nil
			}
			s := &stepping{Bench: b, r: r, Fleet: b.fleet()}
			if err := s.Product.Start(ctx, product.Options{Steps: s.steps()}); err != nil {
				return err
			}
			if err := s.fill(ctx); err != nil {
				return err
			}
			defer s.rollouts.Stop()
			if err := s.Product.Stop(); err != nil {
				return err
			}
			return s.Started(ctx, product.Options{Steps: s.steps()}, func() error { return s.measure(ctx) })
		},
	}
}

// stepping is one run of the scenario.
type stepping struct {
	*Bench
	Fleet
	r        *report.Result
	rollouts *lab.Rollouts
	hand     *byHand
}

const (
	bundle = "bundle" // the ConfigMap that the fleet reads
	asides = 3        // the Deployments of each of aside
)

// aside are the namespaces whose own ConfigMap, of their own name, is edited at
// the same moment.
func aside() []string { return []string{"aa-prod", "zz-prod"} }

// team names the namespaces of the fleet; all stand between those of aside.
func team(i int) string { return fmt.Sprintf("team-%03d", i) }

// of is the namespace of the fleet's workload number i.
func (s *stepping) of(i int) string { return team(i % s.Namespaces) }

// fill makes everything and waits until all of it is available.
func (s *stepping) fill(ctx context.Context) (err error) {
	if s.rollouts, err = s.Rollouts(ctx); err != nil {
		return err
	}
	s.Say("creating %d Deployments in %d namespaces", s.Workloads, s.Namespaces)
	for i := range s.Namespaces {
		if err := s.room(ctx, team(i), bundle); err != nil {
			return err
		}
	}
	err = lab.Fill(ctx, s.Workloads, func(ctx context.Context, i int) error {
		return s.add(ctx, s.of(i), bundle, i)
	})
	if err != nil {
		return err
	}
	for _, namespace := range aside() {
		if err := s.room(ctx, namespace, namespace); err != nil {
			return err
		}
		for i := range asides {
			if err := s.add(ctx, namespace, namespace, i); err != nil {
				return err
			}
		}
	}
	s.hand = &byHand{Bench: s.Bench, rollouts: s.rollouts, width: s.width()}
	if err := s.hand.fill(ctx, s.Workloads); err != nil {
		return err
	}
	want := s.Workloads + asides*len(aside()) + s.hand.n
	return s.rollouts.Wait(ctx, 30*time.Minute, func() error {
		if whole := s.rollouts.Whole(); whole < want {
			return fmt.Errorf("%d of %d Deployments are available", whole, want)
		}
		return nil
	})
}

// room makes a namespace that the product cares for, with a ConfigMap.
func (s *stepping) room(ctx context.Context, namespace, source string) error {
	if err := s.Product.Namespace(ctx, namespace); err != nil {
		return err
	}
	return s.ConfigMap(ctx, namespace, source, source+"-0")
}

func (s *stepping) add(ctx context.Context, namespace, source string, i int) error {
	return s.Create(ctx, s.Product.Workload(lab.Workload{
		Namespace: namespace, Name: fmt.Sprintf("app-%05d", i), Sources: []string{"configmap/" + source}, Rolling: true,
	}))
}

// measure measures the floor and the product.
func (s *stepping) measure(ctx context.Context) error {
	if s.Cores > 0 {
		s.Say("the API server has %v cores from now on", s.Cores)
		if err := s.Throttle(s.Cores, "kube-apiserver"); err != nil {
			return err
		}
	}
	if err := s.hand.measure(ctx); err != nil {
		return err
	}
	s.hand.figures(s.r)
	if err := lab.Pause(ctx, s.Span(30*time.Second, 5*time.Second)); err != nil { // what went before is over
		return err
	}
	m, err := newMeter(s.Bench)
	if err != nil {
		return err
	}
	rest, err := m.processes["controller"].MiB()
	if err != nil {
		return err
	}
	o := &outcome{stepping: s, meter: m, restMiB: rest, restLive: liveHeap(ctx, s.Bench), begin: time.Now()}
	if err := m.during(ctx, func(ctx context.Context) error { return s.roll(ctx, o) }, o.progress); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.r.Skip("%v; the figures are those of what had rolled", err)
	}
	o.figures()
	return nil
}

// roll edits and waits until all have rolled.
func (s *stepping) roll(ctx context.Context, o *outcome) error {
	theory := s.inTheory(s.Workloads, s.width(), s.hand.took)
	s.Say("editing; in theory it takes %.0f s", theory.Seconds())
	group, edits := errgroup.WithContext(ctx)
	group.Go(func() error {
		for i := range s.Namespaces {
			if err := s.Edit(edits, team(i), bundle, bundle+"-1"); err != nil {
				return err
			}
		}
		o.edited = time.Now()
		return nil
	})
	for _, namespace := range aside() {
		group.Go(func() error { return s.Edit(edits, namespace, namespace, namespace+"-1") })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	want := s.Workloads + asides*len(aside())
	return s.rollouts.Wait(ctx, 3*theory+5*time.Minute, func() error {
		if done := o.done(); done < want {
			return fmt.Errorf("%d of %d Deployments have rolled", done, want)
		}
		return nil
	})
}
