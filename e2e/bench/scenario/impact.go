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
			"configuration. The product has 10,000 workloads in its index, and rolls in steps, as by default. Dry runs store nothing, so that nothing rolls meanwhile. " +
			"\"Added\" is a write less the one without a webhook of the same turn. In rows with a quarter of a core, the API server and etcd have that each.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if b.Given.Adapter.Name != "configstamp" {
				r.Skip("%s warns of nothing", b.Given.Adapter.Name)
				return nil
			}
			i := &impacts{Bench: b, r: r}
			asShipped := product.Options{Steps: &product.Steps{Settle: 2 * time.Second, Soak: 10 * time.Second, Slots: 100}}
			return b.Started(ctx, asShipped, func() error { return i.measure(ctx) })
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
	users  int // of the source; as many
	dryRun bool
	cores  float64 // of the API server; 0: all
	turns  int
}

func (w writes) String() string {
	text := fmt.Sprintf("users: %d", w.users)
	if w.dryRun {
		text += ", dry run"
	}
	if w.cores > 0 {
		text += fmt.Sprintf(", %v of a core", w.cores)
	}
	return text
}

// usersOf are the sources that are written, by the number of their users.
func usersOf() []int { return []int{1, 100, 1000} }

func sourceOf(users int) string { return fmt.Sprintf("of-%d", users) }

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
	if err := lab.Until(ctx, "the other webhook to be called", time.Minute, i.called); err != nil {
		return err
	}
	turns, rows := i.Size(3000, 100), []writes{}
	for _, users := range usersOf() {
		rows = append(rows, writes{users: users, dryRun: true, turns: turns}, writes{users: users, dryRun: true, cores: 0.25, turns: turns / 10})
	}
	for _, row := range append(rows, writes{users: 1, turns: turns}) {
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
		for _, users := range usersOf() {
			if err := i.ConfigMap(ctx, namespace, sourceOf(users), "0"); err != nil {
				return err
			}
		}
	}
	rest := i.Size(10_000, 1500)
	for _, users := range usersOf() {
		rest -= users
		err := lab.Fill(ctx, users, func(ctx context.Context, n int) error {
			name, source := fmt.Sprintf("%s-%04d", sourceOf(users), n), "configmap/"+sourceOf(users)
			return i.Create(ctx, i.Product.Workload(lab.Workload{Namespace: oursWrites, Name: name, Sources: []string{source}, Rolling: true}))
		})
		if err != nil {
			return err
		}
	}
	return i.Others(ctx, others, rest)
}

// called fails as long as the webhook that does nothing does not answer.
func (i *impacts) called(ctx context.Context) error {
	count := func() (float64, error) {
		values, err := i.Metrics(ctx)
		return lab.Sum(values, "apiserver_admission_webhook_request_total", "no-op.example.com", `code="200"`), err
	}
	before, err := count()
	if err != nil {
		return err
	}
	if _, err := i.write(ctx, noOpWrites, writes{users: 1, dryRun: true}); err != nil {
		return err
	}
	after, err := count()
	if err == nil && after == before {
		err = errors.New("it does not answer")
	}
	return err
}

// warned fails as long as the product does not warn of each source's users.
func (i *impacts) warned(ctx context.Context) error {
	for _, users := range usersOf() {
		source := sourceOf(users)
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
	body, err := json.Marshal(lab.NewConfigMap(namespace, sourceOf(row.users), fmt.Sprint(i.edits)))
	if err != nil {
		return 0, fmt.Errorf("writing a ConfigMap: %w", err)
	}
	at := "/api/v1/namespaces/" + namespace + "/configmaps/" + sourceOf(row.users)
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
		report.New(row.String()+": added", "ms", added(oursWrites)).Compared(report.P99).
			Over("what is added by "+nothing, added(noOpWrites)).AtMost(report.Ratio, 2).
			Saying("p50: %.2f times; from p99 to p99 of the writes: %.2f ms, and %.2f ms of the webhook that does nothing",
				added(oursWrites).P50/added(noOpWrites).P50, ours.P99-plain.P99, noOp.P99-plain.P99),
	)
}
