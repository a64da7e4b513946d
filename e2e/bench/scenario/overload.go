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
			"pace of its own. Writes are PATCHes and PUTs of Deployments, status aside, by the API server's own metrics, read before and after, without a quota; "+
			"those that come until the product has nothing to do count too. A round that does not end counts as long as was waited.", crowd),
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			o := &overloaded{fan: &fan{Bench: b, r: r, rolling: true}}
			return b.Started(ctx, product.Options{Immediate: true}, func() error { return o.measure(ctx) })
		},
	}
}

type overloaded struct {
	*fan
	templates *lab.Templates
}

const oursOverloaded = "overload"

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
		{0.1, o.Size(3, 1), 3 * time.Minute},
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

func (o *overloaded) measure(ctx context.Context) (err error) {
	if err := o.Product.Namespace(ctx, oursOverloaded); err != nil {
		return err
	}
	if o.templates, err = o.fill(ctx, oursOverloaded, crowd); err != nil {
		return err
	}
	defer o.templates.Stop()
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

// fates are how the rounds of one row went.
type fates struct {
	seconds, writes, refused, unrolled []float64
	ended                              []string // processes of the product that ended by themselves
}

func (o *overloaded) row(ctx context.Context, row starved) error {
	var f fates
	for round := range row.rounds {
		if err := o.round(ctx, row, round+1, &f); err != nil {
			return err
		}
		o.Say("%s: %.2f s", row, f.seconds[round])
	}
	o.r.Add(row.String()+": until the last template", "s", f.seconds...)
	o.r.Add(row.String()+": writes for each roll", "requests", f.writes...)
	o.r.Add(row.String()+": writes that were refused, in a round", "requests", f.refused...)
	o.r.Add(fmt.Sprintf("%s: workloads of %d that did not roll within %s", row, crowd, row.patience), "workloads", f.unrolled...)
	o.r.AddNoted(row.String()+": processes that ended by themselves", "processes", strings.Join(f.ended, ", "), float64(len(f.ended)))
	return nil
}

// round edits the source under the quota, and waits until all templates have changed.
func (o *overloaded) round(ctx context.Context, row starved, number int, f *fates) error {
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
	changes := o.templates.Changes()
	if err := o.Edit(ctx, oursOverloaded, "shared", fmt.Sprintf("%s, round %d", row, number)); err != nil {
		return err
	}
	begin := time.Now()
	progress, late := o.templates.Wait(ctx, changes, crowd, row.patience)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	took := progress.Last.Sub(begin)
	if late != nil {
		took = row.patience
	}
	if err := o.calm(ctx, changes, f); err != nil {
		return err
	}
	after, err := o.Writes(ctx)
	if err != nil {
		return err
	}
	writes := after.Since(before)
	f.seconds = append(f.seconds, took.Seconds())
	f.writes = append(f.writes, writes.All/float64(max(o.templates.Since(changes).Total, 1)))
	f.refused = append(f.refused, writes.Refused)
	f.unrolled = append(f.unrolled, float64(crowd-progress.Changed))
	return nil
}

// calm takes the quota away, starts processes again that ended, and waits until
// what is left of a round is over.
func (o *overloaded) calm(ctx context.Context, changes map[string]int, f *fates) error {
	if err := o.Throttle(0, lab.ControlPlane()...); err != nil {
		return err
	}
	if ended := o.Product.Ended(); len(ended) > 0 {
		f.ended = append(f.ended, ended...)
		o.Say("%s ended; starting again", strings.Join(ended, ", "))
		_ = o.Product.Stop() // says that it has ended
		if err := o.Product.Start(ctx, product.Options{Immediate: true}); err != nil {
			return err
		}
	}
	_, _ = o.templates.Wait(ctx, changes, crowd, time.Minute) // what does not come now is no part of the round
	if o.Given.Adapter.Working != nil {
		if err := o.Product.Work(ctx); err != nil {
			return err
		}
	}
	return lab.Pause(ctx, time.Second)
}
