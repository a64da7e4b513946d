package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

// crowd is how many workloads use the one source.
const crowd = 50

func overload() Scenario {
	return Scenario{
		Name: "overload", Title: "One source, 50 workloads, a starved control plane",
		Controllers: workloadControllers(),
		Method: fmt.Sprintf("The API server and etcd each get a CPU quota by a cgroup, as a limit of their Pods would do (periods of 100 ms); the product and who measures have none. "+
			"A ConfigMap is edited that %d Deployments use; from the API server's answer until a watch has shown another pod template of each, the product acting at once and at no "+
			"pace of its own. Floor: the bare loop, as many empty patches, %d at a time, through a webhook that decodes nothing and adds one annotation, in turns with the product under the same "+
			"quota; a patch that fails is sent again at once. Writes are PATCHes and PUTs of Deployments, status aside, by the API server's own metrics, read before and after, without a quota; "+
			"those that come until the product has nothing to do count too. A round that does not end counts as long as was waited.", crowd, fanoutClients),
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			floor, err := b.AnnotatingFloor()
			if err != nil {
				return err
			}
			defer floor.Close()
			o := &overloaded{fan: &fan{Bench: b, r: r, floor: floor, rolling: true}}
			if o.raw, err = b.Raw(); err != nil {
				return err
			}
			return b.Started(ctx, product.Options{Immediate: true}, func() error { return o.measure(ctx) })
		},
	}
}

type overloaded struct {
	*fan
	watches map[string]*lab.Templates
	ended   []string // processes of the product that ended by themselves
}

const (
	oursOverloaded  = "overload"
	floorOverloaded = "overload-floor"
)

// starved is one row: a quota of so many cores; 0: none.
type starved struct {
	cores    float64
	rounds   int
	patience time.Duration
}

func (o *overloaded) rows() []starved {
	rows := []starved{
		{0, o.Size(5, 2), 2 * time.Minute},
		{0.5, o.Size(5, 2), 2 * time.Minute},
		{0.25, o.Size(5, 2), 2 * time.Minute},
		{0.1, o.Size(3, 1), o.Span(3*time.Minute, time.Minute)},
	}
	if o.Cores == 0 {
		return rows
	}
	return []starved{{o.Cores, o.Size(5, 2), 2 * time.Minute}}
}

func (s starved) String() string {
	if s.cores == 0 {
		return "no quota"
	}
	return fmt.Sprintf("%v of a core", s.cores)
}

func (o *overloaded) measure(ctx context.Context) error {
	if err := o.prepare(ctx); err != nil {
		return err
	}
	for _, templates := range o.watches {
		defer templates.Stop()
	}
	for _, row := range o.rows() {
		err := o.Throttle(row.cores, lab.ControlPlane()...)
		if errors.Is(err, lab.ErrNoQuota) {
			o.r.Skip("%s: %v", row, err)
			continue
		}
		if err != nil {
			return err
		}
		if err := o.row(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (o *overloaded) prepare(ctx context.Context) error {
	if err := errors.Join(o.Product.Namespace(ctx, oursOverloaded), o.Namespace(ctx, floorOverloaded, nil)); err != nil {
		return err
	}
	o.watches = map[string]*lab.Templates{}
	for _, namespace := range []string{oursOverloaded, floorOverloaded} {
		templates, err := o.fill(ctx, namespace, crowd)
		if err != nil {
			return err
		}
		o.watches[namespace] = templates
	}
	return o.Serve(ctx, o.floor, floorOverloaded)
}

// fates are how the rounds of one row went, of the product or of the floor.
type fates struct {
	seconds, writes, refused, unrolled []float64
}

func (o *overloaded) row(ctx context.Context, row starved) error {
	all := map[string]*fates{oursOverloaded: {}, floorOverloaded: {}}
	o.ended = nil
	for round := range row.rounds {
		for _, namespace := range []string{floorOverloaded, oursOverloaded} {
			act := o.byHand
			if namespace == oursOverloaded {
				value := fmt.Sprintf("%s, round %d", row, round+1)
				act = func(ctx context.Context, _ time.Duration) (time.Time, error) {
					err := o.Edit(ctx, oursOverloaded, "shared", value)
					return time.Now(), err
				}
			}
			if err := o.round(ctx, row, namespace, act, all[namespace]); err != nil {
				return err
			}
		}
		o.Say("%s: %.2f s, by hand %.2f s", row, all[oursOverloaded].seconds[round], all[floorOverloaded].seconds[round])
	}
	o.figures(row, all[oursOverloaded], all[floorOverloaded])
	return nil
}

// round has something happen under the quota, and waits until all templates of a
// namespace have changed. Act tells since when time counts.
func (o *overloaded) round(ctx context.Context, row starved, namespace string, act func(context.Context, time.Duration) (time.Time, error), f *fates) error {
	if err := errors.Join(o.Throttle(0, lab.ControlPlane()...), lab.Pause(ctx, time.Second)); err != nil {
		return err
	}
	before, err := o.Writes(ctx)
	if err != nil {
		return err
	}
	// A second under the quota, so that what the API server has saved up is gone.
	if err := errors.Join(o.Throttle(row.cores, lab.ControlPlane()...), lab.Pause(ctx, time.Second)); err != nil {
		return err
	}
	templates := o.watches[namespace]
	changes := templates.Changes()
	begin, err := act(ctx, row.patience)
	if err != nil {
		return err
	}
	progress, late := templates.Wait(ctx, changes, crowd, row.patience)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	took := progress.Last.Sub(begin)
	if late != nil {
		took = row.patience
	}
	if err := o.calm(ctx, templates, changes); err != nil {
		return err
	}
	after, err := o.Writes(ctx)
	if err != nil {
		return err
	}
	writes := after.Since(before)
	f.seconds = append(f.seconds, took.Seconds())
	f.writes = append(f.writes, writes.All/float64(max(templates.Since(changes).Total, 1)))
	f.refused = append(f.refused, writes.Refused)
	f.unrolled = append(f.unrolled, float64(crowd-progress.Changed))
	return nil
}

// calm takes the quota away, starts processes again that ended, and waits until
// what is left of a round is over.
func (o *overloaded) calm(ctx context.Context, templates *lab.Templates, changes map[string]int) error {
	if err := o.Throttle(0, lab.ControlPlane()...); err != nil {
		return err
	}
	if ended := o.Product.Ended(); len(ended) > 0 {
		o.ended = append(o.ended, ended...)
		o.Say("%s ended; starting again", strings.Join(ended, ", "))
		_ = o.Product.Stop() // says that it has ended
		if err := o.Product.Start(ctx, product.Options{Immediate: true}); err != nil {
			return err
		}
	}
	_, _ = templates.Wait(ctx, changes, crowd, time.Minute) // what does not come now is no part of the round
	if o.Given.Adapter.Working != nil {
		if err := o.Product.Work(ctx); err != nil {
			return err
		}
	}
	return lab.Pause(ctx, time.Second)
}

// byHand patches every Deployment of the floor until that is done.
func (o *overloaded) byHand(ctx context.Context, patience time.Duration) (time.Time, error) {
	begin := time.Now()
	err := lab.Together(ctx, fanoutClients, crowd, func(ctx context.Context, i int) error {
		for time.Since(begin) < patience {
			if o.patch(ctx, floorOverloaded, i) == nil {
				return nil
			}
			if err := lab.Pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
	return begin, err
}

func (o *overloaded) figures(row starved, ours, floor *fates) {
	name := row.String() + ": "
	seconds := report.New(name+"until the last template", "s", report.Of(ours.seconds...)).
		Over("the bare loop under the same quota", report.Of(floor.seconds...)).
		Saying("the bare loop: at most %v of its patches were refused in a round, and at most %v of %d Deployments did not roll",
			report.Of(floor.refused...).Max, report.Of(floor.unrolled...).Max, crowd)
	writes := report.New(name+"writes for each roll", "requests", report.Of(ours.writes...)).Over("the bare loop under the same quota", report.Of(floor.writes...))
	unrolled := report.New(fmt.Sprintf("%sworkloads of %d that did not roll within %s", name, crowd, row.patience), "workloads", report.Of(ours.unrolled...))
	if row.cores == 0.25 {
		writes.AtMost(report.P50, 1.2)
		unrolled.AtMost(report.Max, 0)
	}
	o.r.Add(seconds, writes,
		report.New(name+"writes that were refused, in a round", "requests", report.Of(ours.refused...)),
		unrolled,
		report.One(name+"processes that ended by themselves", "processes", float64(len(o.ended))).AtMost(report.Max, 0),
	)
}
