package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func largeTemplate() Scenario {
	return Scenario{
		Name: "large-template", Title: "One template with 1,800 sources, answered late or by a starved control plane",
		Controllers: workloadControllers(),
		Method: "One Deployment uses 1,800 ConfigMaps, all keys of each. First every answer of the API server to the product's processes comes 50 ms late, by a proxy (events of watches do not); " +
			"then, without a proxy, the API server and etcd have a quarter of a core each. Creations are a person's; \"stamped\" is when its template shows a change by the product, which may be in the answer. " +
			"Then one ConfigMap is edited, and then all of them, 24 at a time, the product acting at once; from the API server's answer to the last edit until a watch shows the last change of " +
			"the template. Writes are those of Deployments, by the API server's own metrics. At the end a person sends an empty patch: whatever that still changes had not been rolled.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			for _, mode := range []largeMode{
				{name: "answers 50 ms late", namespace: "large-late", delay: 50 * time.Millisecond},
				{name: "a quarter of a core", namespace: "large-starved", cores: 0.25},
			} {
				if err := (&large{Bench: b, r: r, largeMode: mode, n: b.Size(1800, 300)}).run(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

type largeMode struct {
	name, namespace string
	delay           time.Duration
	cores           float64 // 0: as many as there are
}

type large struct {
	*Bench
	largeMode
	r         *report.Result
	raw       *lab.Raw
	templates *lab.Templates
	n, values int
}

const largeName = "large"

// patience bounds the wait for one change.
func (l *large) patience() time.Duration { return l.Span(2*time.Minute, 30*time.Second) }

func (l *large) source(i int) string { return fmt.Sprintf("c-%04d", i) }

func (l *large) workload(name string) lab.Workload {
	w := lab.Workload{Namespace: l.namespace, Name: name}
	for i := range l.n {
		w.Sources = append(w.Sources, "configmap/"+l.source(i))
	}
	return l.Product.Workload(w)
}

func (l *large) run(ctx context.Context) (err error) {
	if l.raw, err = l.Raw(); err != nil {
		return err
	}
	if err := l.Product.Namespace(ctx, l.namespace); err != nil {
		return err
	}
	l.Say("%s: creating %d ConfigMaps", l.name, l.n)
	err = lab.Fill(ctx, l.n, func(ctx context.Context, i int) error { return l.ConfigMap(ctx, l.namespace, l.source(i), "0") })
	if err != nil {
		return err
	}
	if l.templates, err = l.Templates(ctx, l.namespace); err != nil {
		return err
	}
	defer l.templates.Stop()
	return l.Started(ctx, product.Options{Immediate: true, Delay: l.delay}, func() error {
		if l.cores == 0 {
			return l.measure(ctx)
		}
		err := l.Throttle(l.cores, lab.ControlPlane()...)
		if errors.Is(err, lab.ErrNoQuota) {
			l.r.Skip("%s: %v", l.name, err)
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(l.measure(ctx), l.Throttle(0, lab.ControlPlane()...))
	})
}

func (l *large) measure(ctx context.Context) error {
	if err := l.creations(ctx); err != nil {
		return err
	}
	if err := l.edits(ctx, "an edit of one", l.Size(5, 2), 1); err != nil {
		return err
	}
	if err := l.edits(ctx, "an edit of all", l.Size(3, 1), l.n); err != nil {
		return err
	}
	before := l.templates.Changes()
	if _, _, err := l.raw.Do(ctx, "PATCH", path(l.namespace, largeName), mergeType, []byte("{}")); err != nil {
		return err
	}
	if err := lab.Pause(ctx, 2*time.Second); err != nil {
		return err
	}
	l.r.Add(report.One(l.name+": changes by a person's empty patch at the end", "templates", float64(l.templates.Since(before).Total)).AtMost(report.Max, 0))
	return nil
}

// creations creates the Deployment several times; the last one stays.
func (l *large) creations(ctx context.Context) error {
	var answered, stamped []float64
	lost, late := 0, 0
	for round := range l.Size(5, 2) {
		name := fmt.Sprintf("created-%d", round)
		if round == 0 {
			name = largeName
		}
		body, err := json.Marshal(l.workload(name).Deployment())
		if err != nil {
			return fmt.Errorf("writing a Deployment: %w", err)
		}
		before, begin := l.templates.Changes(), time.Now()
		answer, took, err := l.raw.Do(ctx, "POST", path(l.namespace), jsonType, body)
		if err != nil {
			return err
		}
		answered = append(answered, took.Seconds())
		var created appsv1.Deployment
		if err := json.Unmarshal(answer, &created); err != nil {
			return fmt.Errorf("reading a Deployment: %w", err)
		}
		switch {
		case len(created.Spec.Template.Annotations) > 1: // one is the manifest's
			stamped = append(stamped, took.Seconds())
		case l.Given.Adapter.Webhook:
			late++
			progress, err := l.templates.Wait(ctx, before, 1, l.patience())
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				lost++
				progress.Last = begin.Add(l.patience())
			}
			stamped = append(stamped, progress.Last.Sub(begin).Seconds())
		}
		if name != largeName {
			if _, _, err := l.raw.Do(ctx, "DELETE", path(l.namespace, name), jsonType, nil); err != nil {
				return err
			}
		}
	}
	l.Say("%s: created in %.2f s, stamped after %.2f s", l.name, report.Of(answered...).P50, report.Of(stamped...).P50)
	l.r.Add(report.New(l.name+": a creation, until it is answered", "s", report.Of(answered...)))
	if l.Given.Adapter.Webhook {
		l.r.Add(report.New(l.name+": a creation, until it is stamped", "s", report.Of(stamped...)).
			Saying("%d of %d were not stamped when they were answered, %d not within %s", late, len(stamped), lost, l.patience()))
	}
	return nil
}

// edits edits the first n sources at the same time, and again in each round.
func (l *large) edits(ctx context.Context, what string, rounds, n int) error {
	var seconds, rolls, writes []float64
	lost := 0
	for range rounds {
		if err := l.quiet(ctx); err != nil {
			return err
		}
		counted, err := l.Writes(ctx)
		if err != nil {
			return err
		}
		l.values++
		before := l.templates.Changes()
		err = lab.Fill(ctx, n, func(ctx context.Context, i int) error {
			return l.Edit(ctx, l.namespace, l.source(i), fmt.Sprint(l.values))
		})
		if err != nil {
			return err
		}
		answered := time.Now()
		_, err = l.templates.Wait(ctx, before, 1, l.patience())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			lost++
		}
		if err := l.quiet(ctx); err != nil {
			return err
		}
		after, err := l.Writes(ctx)
		if err != nil {
			return err
		}
		progress, took := l.templates.Since(before), l.patience()
		if progress.Total > 0 {
			took = max(0, progress.Last.Sub(answered))
		}
		l.Say("%s, %s: %.2f s, %d rolls", l.name, what, took.Seconds(), progress.Total)
		seconds, rolls = append(seconds, took.Seconds()), append(rolls, float64(progress.Total))
		writes = append(writes, after.Since(counted).All)
		if lost > 0 {
			break // the others would take as long
		}
	}
	name := l.name + ": " + what
	l.r.Add(
		report.New(name+", until the last change of the template", "s", report.Of(seconds...)),
		report.New(name+", changes of the template", "rolls", report.Of(rolls...)),
		report.New(name+", writes", "requests", report.Of(writes...)),
		report.One(fmt.Sprintf("%s, after which nothing changed within %s", name, l.patience()), "edits", float64(lost)).AtMost(report.Max, 0),
	)
	return nil
}

// quiet waits until no template has changed for a while and, where the product
// tells, until it has nothing to do; no longer than patience.
func (l *large) quiet(ctx context.Context) error {
	const still = 3 * time.Second
	bounded, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	for {
		before := l.templates.Changes()
		if l.Given.Adapter.Working != nil {
			_ = l.Product.Work(bounded) // what is left to do then is seen in the figures
		}
		if err := lab.Pause(ctx, still); err != nil {
			return err
		}
		if l.templates.Since(before).Total == 0 || bounded.Err() != nil {
			return nil
		}
	}
}
