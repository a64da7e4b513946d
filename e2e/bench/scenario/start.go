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

func start() Scenario {
	return Scenario{
		Name: "start", Title: "Start to first roll with 10,000 Secrets of 20 KiB",
		Method: "The Secrets are there, each with other content, and one workload that uses one Secret more. In each round the product is stopped, that Secret is edited, and all processes of the " +
			"product are started at once; from then until a watch shows another pod template, and the CPU time, user and system, that all of them have taken by then. Where a product does not find what was " +
			"edited while it was stopped, the Secret is edited again each half second, and its figures have a name of their own. Floor: all Secrets read once, in protobuf, 500 a page, in turns with the product.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			return (&starting{Bench: b, r: r}).run(ctx)
		},
	}
}

type starting struct {
	*Bench
	r         *report.Result
	templates *lab.Templates
	edits     int

	seconds, cpu, pages []float64
	ready               map[string][]float64
	lost                int
}

const startNamespace = "start"

func (s *starting) run(ctx context.Context) (err error) {
	if err := errors.Join(s.Product.Namespace(ctx, startNamespace), s.edit(ctx)); err != nil {
		return err
	}
	if s.templates, err = s.Templates(ctx, startNamespace); err != nil {
		return err
	}
	defer s.templates.Stop()
	s.Say("creating %d Secrets of %d bytes", s.secrets(), secretBytes)
	if err := s.Secrets(ctx, startNamespace, s.secrets(), secretBytes); err != nil {
		return err
	}
	err = s.Started(ctx, product.Options{Immediate: true}, func() error {
		err := s.Create(ctx, s.Product.Workload(lab.Workload{Namespace: startNamespace, Name: "web-app", Sources: []string{"secret/web-secret"}}))
		if err != nil {
			return err
		}
		return lab.Pause(ctx, 2*time.Second) // what has no webhook stamps it now
	})
	if err != nil {
		return err
	}
	s.ready = map[string][]float64{}
	for range s.Size(5, 2) {
		took, err := s.Pages(ctx)
		if err != nil {
			return err
		}
		s.pages = append(s.pages, took.Seconds())
		if err := s.round(ctx); err != nil {
			return err
		}
		if s.lost > 0 {
			break // the others would take as long
		}
	}
	s.figures()
	return nil
}

func (s *starting) edit(ctx context.Context) error {
	s.edits++
	return s.Secret(ctx, startNamespace, "web-secret", fmt.Sprint(s.edits))
}

func (s *starting) round(ctx context.Context) error {
	if err := errors.Join(s.edit(ctx), lab.Pause(ctx, time.Second)); err != nil {
		return err
	}
	before, begin := s.templates.Changes(), time.Now()
	if err := s.Product.StartOnly(ctx, product.Options{Immediate: true}); err != nil {
		return err
	}
	err := s.firstRoll(ctx, before, begin)
	return errors.Join(err, s.Product.Stop())
}

func (s *starting) firstRoll(ctx context.Context, before map[string]int, begin time.Time) error {
	readyAt, stop := s.whenReady(ctx)
	defer stop()
	const patience = 3 * time.Minute
	progress, err := lab.Progress{}, error(nil)
	for {
		wait := patience
		if s.Given.Adapter.Forgets {
			wait = time.Second / 2
		}
		progress, err = s.templates.Wait(ctx, before, 1, wait)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || time.Since(begin) > patience {
			break
		}
		if err := s.edit(ctx); err != nil {
			return err
		}
	}
	took := patience
	if err == nil {
		took = progress.Last.Sub(begin)
	} else {
		s.lost++
	}
	spent := 0.0
	for _, process := range s.Product.Processes() {
		seconds, err := process.CPU()
		if err != nil {
			return err
		}
		spent += seconds
	}
	s.seconds, s.cpu = append(s.seconds, took.Seconds()), append(s.cpu, spent)
	s.Say("rolled after %.2f s and %.2f s of CPU", took.Seconds(), spent)
	for role, after := range readyAt() {
		s.ready[role] = append(s.ready[role], after)
	}
	return nil
}

// whenReady asks every process that can tell when it is ready. The first function
// waits for all, and returns the seconds from their starts; the second gives up.
func (s *starting) whenReady(ctx context.Context) (wait func() map[string]float64, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	type answer struct {
		role  string
		after time.Duration
	}
	names := roles(s.Product)
	answers := make(chan answer, len(names))
	for _, role := range names {
		go func() {
			after, err := s.Product.WaitReady(ctx, role)
			if err != nil {
				after = 0
			}
			answers <- answer{role, after}
		}()
	}
	return func() map[string]float64 {
		all := map[string]float64{}
		for range names {
			if a := <-answers; a.after > 0 { // 0: it cannot tell
				all[a.role] = a.after.Seconds()
			}
		}
		return all
	}, stop
}

func (s *starting) figures() {
	const floor = "all Secrets read once, in protobuf, 500 a page"
	what := ""
	if s.Given.Adapter.Forgets {
		what = " of an edit after the start"
	}
	s.r.Add(
		report.New("start to first roll"+what, "s", report.Of(s.seconds...)).Over(floor, report.Of(s.pages...)),
		report.New("CPU of all processes until the first roll"+what, "s", report.Of(s.cpu...)),
	)
	for _, role := range roles(s.Product) {
		if len(s.ready[role]) == 0 {
			continue
		}
		s.r.Add(report.New(role+": start to ready, all processes at once", "s", report.Of(s.ready[role]...)).Over(floor, report.Of(s.pages...)))
	}
	s.r.Add(report.One("starts after which nothing rolled within 3 minutes", "starts", float64(s.lost)).AtMost(report.Max, 0))
}
