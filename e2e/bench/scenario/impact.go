package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func impact() Scenario {
	return Scenario{
		Name: "impact", Title: "A write of a ConfigMap, and the warning of what it rolls",
		Controllers: workloadControllers(),
		Method: "Writes of a ConfigMap that other content comes by, in turns without any webhook, with a validating webhook that decodes nothing and allows, and with " +
			"the product's, which warns of the users. The one that does nothing is a process of its own behind the same TLS server, called by a copy of the product's " +
			"configuration. The product has all the workloads in its index, of which one uses the one source, and a thousand the other. Dry runs store nothing, so " +
			"that nothing rolls meanwhile. \"Added\" is a write less the one without a webhook of the same turn; \"between the p99s\" is the p99 of all writes less " +
			"the p99 of all without a webhook. Starved: the API server and etcd have a quarter of a core each.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if b.Given.Adapter.Name != "configstamp" {
				r.Skip("%s warns of nothing", b.Given.Adapter.Name)
				return nil
			}
			i := &impacts{Bench: b, r: r}
			return b.Started(ctx, product.Options{}, func() error { return i.measure(ctx) })
		},
	}
}

type impacts struct {
	*Bench
	r     *report.Result
	raw   *lab.Raw
	edits int
}

// The namespaces, each with its way of a write.
const (
	plainWrites = "impact-plain"
	noOpWrites  = "impact-no-op"
	oursWrites  = "impact-ours"
)

// writes is one row of the measurement.
type writes struct {
	source string
	dryRun bool
	cores  float64 // of the API server; 0: all
	turns  int
}

func (w writes) String() string {
	text := map[string]string{"one": "a source of one user", "many": "a source of 1,000 users"}[w.source]
	if w.dryRun {
		text += ", dry run"
	}
	if w.cores > 0 {
		text += fmt.Sprintf(", %v of a core", w.cores)
	}
	return text
}

func (i *impacts) measure(ctx context.Context) (err error) {
	if i.raw, err = i.Raw(); err != nil {
		return err
	}
	if err := i.fill(ctx); err != nil {
		return err
	}
	noOp, err := i.NoOp(ctx, noOpWrites)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, noOp.Stop()) }()
	if err := lab.Until(ctx, "the product to warn", time.Minute, i.warned); err != nil {
		return err
	}
	turns := i.Size(1500, 100)
	for _, row := range []writes{
		{source: "one", dryRun: true, turns: turns},
		{source: "many", dryRun: true, turns: turns},
		{source: "one", turns: turns},
		{source: "one", dryRun: true, cores: 0.25, turns: turns / 5},
		{source: "many", dryRun: true, cores: 0.25, turns: turns / 5},
	} {
		err := i.Throttle(row.cores, lab.ControlPlane()...)
		if errors.Is(err, lab.ErrNoQuota) {
			i.r.Skip("%s: %v", row, err)
			continue
		}
		if err == nil {
			err = i.row(ctx, row)
		}
		if err := errors.Join(err, i.Throttle(0, lab.ControlPlane()...)); err != nil {
			return err
		}
	}
	return nil
}

// fill makes the workloads and what they use.
func (i *impacts) fill(ctx context.Context) error {
	const others = "impact-others"
	if err := errors.Join(i.Namespace(ctx, plainWrites, nil), i.Namespace(ctx, noOpWrites, nil),
		i.Product.Namespace(ctx, oursWrites), i.Product.Namespace(ctx, others)); err != nil {
		return err
	}
	for _, namespace := range []string{plainWrites, noOpWrites, oursWrites} {
		for _, name := range []string{"one", "many"} {
			if err := i.ConfigMap(ctx, namespace, name, "0"); err != nil {
				return err
			}
		}
	}
	user := func(name, source string) error {
		return i.Create(ctx, i.Product.Workload(lab.Workload{Namespace: oursWrites, Name: name, Sources: []string{"configmap/" + source}}))
	}
	if err := user("user-of-one", "one"); err != nil {
		return err
	}
	many := i.Size(1000, 1000)
	if err := lab.Fill(ctx, many, func(_ context.Context, n int) error { return user(fmt.Sprintf("user-%04d", n), "many") }); err != nil {
		return err
	}
	return i.Others(ctx, others, i.Size(10_000, 1500)-many-1)
}

// warned fails as long as the product does not warn of each source's users.
func (i *impacts) warned(ctx context.Context) error {
	for _, source := range []string{"one", "many"} {
		warnings, err := i.WarningsOf(ctx, oursWrites, source, "other")
		if err != nil {
			return err
		}
		if len(warnings) != 1 {
			return fmt.Errorf("an edit of configmap/%s is answered with the warnings %q", source, warnings)
		}
		i.Say("%s", warnings[0])
	}
	return nil
}

func (i *impacts) row(ctx context.Context, row writes) error {
	i.Say("%s", row)
	before, err := i.Metrics(ctx)
	if err != nil {
		return err
	}
	took := map[string][]float64{}
	order := []string{plainWrites, noOpWrites, oursWrites}
	for turn := range row.turns + 2 {
		for at := range order {
			namespace := order[(turn+at)%len(order)]
			elapsed, err := i.write(ctx, namespace, row)
			if err != nil {
				return err
			}
			if turn >= 2 { // the first ones open connections
				took[namespace] = append(took[namespace], float64(elapsed)/float64(time.Millisecond))
			}
		}
	}
	after, err := i.Metrics(ctx)
	if err != nil {
		return err
	}
	i.figures(row, took)
	const open = "apiserver_admission_webhook_fail_open_count"
	i.r.Add(report.One(row.String()+": writes that went on without the product's answer", "writes",
		lab.Sum(after, open, "configstamp.dev")-lab.Sum(before, open, "configstamp.dev")).
		Over("without that of the webhook that does nothing", report.Of(lab.Sum(after, open, "no-op")-lab.Sum(before, open, "no-op"))))
	return nil
}

// write gives a source other content.
func (i *impacts) write(ctx context.Context, namespace string, row writes) (time.Duration, error) {
	i.edits++
	body, err := json.Marshal(lab.NewConfigMap(namespace, row.source, fmt.Sprint(i.edits)))
	if err != nil {
		return 0, fmt.Errorf("writing a ConfigMap: %w", err)
	}
	at := "/api/v1/namespaces/" + namespace + "/configmaps/" + row.source
	if row.dryRun {
		at += "?dryRun=All"
	}
	_, took, err := i.raw.Do(ctx, "PUT", at, jsonType, body)
	return took, err
}

func (i *impacts) figures(row writes, took map[string][]float64) {
	plain, noOp, ours := report.Of(took[plainWrites]...), report.Of(took[noOpWrites]...), report.Of(took[oursWrites]...)
	added := func(namespace string) report.Spread {
		return report.Of(report.Differences(took[namespace], took[plainWrites])...)
	}
	const nothing = "a validating webhook that does nothing"
	i.r.Add(
		report.New(row.String()+": write without a webhook", "ms", plain),
		report.New(row.String()+": write", "ms", ours).Over("with "+nothing, noOp),
		report.New(row.String()+": added", "ms", added(oursWrites)).Over("what is added by "+nothing, added(noOpWrites)),
		report.New(row.String()+": added, p99", "ms", added(oursWrites)).Compared(report.P99).
			Over("what is added by "+nothing, added(noOpWrites)).AtMost(report.Ratio, 2),
		report.One(row.String()+": added, between the p99s", "ms", ours.P99-plain.P99).
			Over("the same of "+nothing, report.Of(noOp.P99-plain.P99)).AtMost(report.Ratio, 2),
	)
}
