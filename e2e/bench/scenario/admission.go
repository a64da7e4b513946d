package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func admission() Scenario {
	return Scenario{
		Name: "admission", Title: "Admission, as a client of the API server sees it",
		Controllers: workloadControllers(),
		Method: "Dry-run creations of a Deployment of 20 KB with ten sources, in turns without any webhook, with a webhook that decodes nothing and allows, " +
			"with one that decodes nothing and adds one annotation (the API server applies a patch then, which costs it most: the floor), and with the " +
			"product's, of the manifest as it is and with the product's annotations on it already (then it has nothing to add). One client takes turns request by request, eight take them ten requests at a time each. " +
			"\"Added\" is a creation less the one without a webhook of the same turn. As by default, configstamp proves that what it stamps is fresh, by a read of each source; wave " +
			"takes it from its memory. \"From memory, for comparison alone\" has ours prove nothing (`--freshness-timeout=1ns`): that is no mode to run it in, as then nothing rolls by re-admission.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if !b.Given.Adapter.Webhook {
				r.Skip("%s has no webhook", b.Given.Adapter.Name)
				return nil
			}
			a := &admissions{Bench: b, r: r}
			if err := a.prepare(ctx); err != nil {
				return err
			}
			defer a.floor.Close()
			defer a.patching.Close()
			modes := []admissionMode{
				{"as by default", product.Options{}},
				{"from memory, for comparison alone", product.Options{FromCache: true}},
			}
			for _, mode := range modes {
				if mode.options.FromCache && !b.Given.Adapter.FromCache {
					continue
				}
				if err := b.Started(ctx, mode.options, func() error { return a.measure(ctx, mode) }); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

type admissionMode struct {
	name    string
	options product.Options
}

// The namespaces, each with its way of admission; stamped is ours too.
const (
	plainAdmission = "admission-plain"
	floorAdmission = "admission-floor"
	patchAdmission = "admission-patch"
	oursAdmission  = "admission-ours"
	stampedAlready = "stamped"
)

type admissions struct {
	*Bench
	r      *report.Result
	raw    *lab.Raw
	bodies map[string][]byte

	floor, patching *lab.Floor
}

func (a *admissions) prepare(ctx context.Context) (err error) {
	if a.raw, err = a.Raw(); err != nil {
		return err
	}
	if a.floor, err = a.AllowingFloor(); err != nil {
		return err
	}
	if a.patching, err = a.AnnotatingFloor(); err != nil {
		return err
	}
	a.bodies = map[string][]byte{}
	for _, namespace := range []string{plainAdmission, floorAdmission, patchAdmission} {
		if err := a.Namespace(ctx, namespace, nil); err != nil {
			return err
		}
	}
	if err := a.Product.Namespace(ctx, oursAdmission); err != nil {
		return err
	}
	for _, namespace := range []string{plainAdmission, floorAdmission, patchAdmission, oursAdmission} {
		workload := lab.Workload{Namespace: namespace, Name: "web-app", Padding: 18 << 10}
		for i := range 10 {
			data := map[string]string{}
			for key := range 10 {
				data[fmt.Sprintf("KEY_%d", key)] = strings.Repeat("value", key)
			}
			name := fmt.Sprintf("source-%d", i)
			meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
			if i%2 == 0 {
				workload.Sources = append(workload.Sources, "configmap/"+name)
				_, err = a.Client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: data}, metav1.CreateOptions{})
			} else {
				workload.Sources = append(workload.Sources, "secret/"+name)
				_, err = a.Client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{ObjectMeta: meta, StringData: data}, metav1.CreateOptions{})
			}
			if err != nil {
				return fmt.Errorf("creating source %s/%s: %w", namespace, name, err)
			}
		}
		if a.bodies[namespace], err = json.Marshal(a.Product.Workload(workload).Deployment()); err != nil {
			return fmt.Errorf("writing a Deployment: %w", err)
		}
	}
	a.Say("a Deployment has %d bytes", len(a.bodies[oursAdmission]))
	if err := a.Serve(ctx, a.floor, floorAdmission); err != nil {
		return err
	}
	return a.Serve(ctx, a.patching, patchAdmission)
}

func (a *admissions) create(ctx context.Context, namespace string) ([]byte, time.Duration, error) {
	body := a.bodies[namespace]
	if namespace == stampedAlready {
		namespace = oursAdmission
	}
	return a.raw.Do(ctx, "POST", path(namespace)+"?dryRun=All", jsonType, body)
}

// stamps fails when the product does nothing to a creation; else it makes of
// what it did a manifest that is stamped already.
func (a *admissions) stamps(ctx context.Context) error {
	answer, _, err := a.create(ctx, oursAdmission)
	if err != nil {
		return err
	}
	var sent, got appsv1.Deployment
	if err := errors.Join(json.Unmarshal(a.bodies[oursAdmission], &sent), json.Unmarshal(answer, &got)); err != nil {
		return fmt.Errorf("reading a Deployment: %w", err)
	}
	if len(got.Spec.Template.Annotations) <= len(sent.Spec.Template.Annotations) {
		return fmt.Errorf("a creation in %s comes back without anything added to its template", oursAdmission)
	}
	sent.Spec.Template.Annotations = got.Spec.Template.Annotations
	if a.bodies[stampedAlready], err = json.Marshal(&sent); err != nil {
		return fmt.Errorf("writing a Deployment: %w", err)
	}
	return nil
}

func (a *admissions) measure(ctx context.Context, mode admissionMode) error {
	if err := lab.Until(ctx, "the webhook to stamp", time.Minute, a.stamps); err != nil {
		return err
	}
	for _, clients := range []int{1, 8} {
		each, turns := 1, a.Size(500, 100)
		if clients > 1 {
			each, turns = 10, a.Size(25, 5)
		}
		a.Say("%s, clients: %d", mode.name, clients)
		before, err := a.Metrics(ctx)
		if err != nil {
			return err
		}
		took := map[string][]float64{}
		order := []string{plainAdmission, floorAdmission, patchAdmission, oursAdmission, stampedAlready}
		for turn := range turns + 2 {
			for i := range order {
				namespace := order[(turn+i)%len(order)]
				found, err := a.block(ctx, namespace, clients, each)
				if err != nil {
					return err
				}
				if turn >= 2 { // the first ones open connections
					took[namespace] = append(took[namespace], found...)
				}
			}
		}
		after, err := a.Metrics(ctx)
		if err != nil {
			return err
		}
		a.figures(mode, clients, took)
		a.apiServer(mode, clients, before, after)
	}
	return nil
}

// block sends requests by several clients at once, each so many.
func (a *admissions) block(ctx context.Context, namespace string, clients, each int) ([]float64, error) {
	took := make([]time.Duration, clients*each)
	err := lab.Together(ctx, clients, clients, func(ctx context.Context, client int) error {
		for i := range each {
			_, elapsed, err := a.create(ctx, namespace)
			if err != nil {
				return err
			}
			took[client*each+i] = elapsed
		}
		return nil
	})
	return report.Milliseconds(took), err
}

func (a *admissions) figures(mode admissionMode, clients int, took map[string][]float64) {
	suffix := fmt.Sprintf(", %s, clients: %d", mode.name, clients)
	plain, floor, ours := took[plainAdmission], took[floorAdmission], took[oursAdmission]
	patched := report.Of(report.Differences(took[patchAdmission], plain)...)
	added := report.New("added"+suffix, "ms", report.Of(report.Differences(ours, plain)...)).
		Compared(report.Mean).Over("what a webhook adds that decodes nothing and adds one annotation", patched)
	if !mode.options.FromCache {
		added.AtMost(report.Ratio, 2)
	}
	a.r.Add(
		report.New("creation without a webhook"+suffix, "ms", report.Of(plain...)),
		report.New("creation"+suffix, "ms", report.Of(ours...)).Over("a creation with a webhook that decodes nothing and allows", report.Of(floor...)),
		added,
		report.New("added, stamped already"+suffix, "ms", report.Of(report.Differences(took[stampedAlready], plain)...)).
			Over("what a webhook adds that decodes nothing and allows", report.Of(report.Differences(floor, plain)...)),
		report.New("added, compared with a call alone"+suffix, "ms", report.Of(report.Differences(ours, plain)...)).
			Over("what a webhook adds that decodes nothing and allows", report.Of(report.Differences(floor, plain)...)),
	)
}

// apiServer adds what the API server itself says of the time in webhooks.
func (a *admissions) apiServer(mode admissionMode, clients int, before, after map[string]float64) {
	const metric = "apiserver_admission_webhook_admission_duration_seconds"
	mean := func(floor bool) float64 {
		sum, count := 0.0, 0.0
		for name, value := range after {
			if strings.Contains(name, "floor.example.com") != floor {
				continue
			}
			switch {
			case strings.HasPrefix(name, metric+"_sum"):
				sum += value - before[name]
			case strings.HasPrefix(name, metric+"_count"):
				count += value - before[name]
			}
		}
		return sum / count * 1000
	}
	a.r.Add(report.One(fmt.Sprintf("one call of the webhook, mean, %s, clients: %d", mode.name, clients), "ms", mean(false)).
		Over("the same of the webhook that decodes nothing", report.Of(mean(true))).
		Saying("by the API server's own metric, %s", metric))
}
