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
		Method: "Dry-run creations of a Deployment of 20 KB with ten sources, in turns without any webhook and with the product's. " +
			"One client takes turns request by request, eight take them ten requests at a time each. \"Added\" is a creation less the one without a webhook of the same turn. " +
			"configstamp proves that what it stamps is fresh, by a read of each source; wave takes it from its memory.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if !b.Given.Adapter.Webhook {
				r.Skip("%s has no webhook", b.Given.Adapter.Name)
				return nil
			}
			a := &admissions{Bench: b, r: r, bodies: map[string][]byte{}}
			if err := a.prepare(ctx); err != nil {
				return err
			}
			return b.Started(ctx, product.Options{}, func() error { return a.measure(ctx) })
		},
	}
}

// The namespaces, each with its way of admission.
const (
	plainAdmission = "admission-plain"
	oursAdmission  = "admission-ours"
)

type admissions struct {
	*Bench
	r      *report.Result
	raw    *lab.Raw
	bodies map[string][]byte
}

func (a *admissions) prepare(ctx context.Context) (err error) {
	if a.raw, err = a.Raw(); err != nil {
		return err
	}
	if err := errors.Join(a.Namespace(ctx, plainAdmission, nil), a.Product.Namespace(ctx, oursAdmission)); err != nil {
		return err
	}
	for _, namespace := range []string{plainAdmission, oursAdmission} {
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
	return nil
}

func (a *admissions) create(ctx context.Context, namespace string) ([]byte, time.Duration, error) {
	return a.raw.Do(ctx, "POST", path(namespace)+"?dryRun=All", "application/json", a.bodies[namespace])
}

// stamps fails when the product does nothing to a creation.
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
	return nil
}

func (a *admissions) measure(ctx context.Context) error {
	if err := lab.Until(ctx, "the webhook to stamp", time.Minute, a.stamps); err != nil {
		return err
	}
	for _, clients := range []int{1, 8} {
		each, turns := 1, a.Size(500, 100)
		if clients > 1 {
			each, turns = 10, a.Size(25, 5)
		}
		a.Say("clients: %d", clients)
		took := map[string][]float64{}
		order := []string{plainAdmission, oursAdmission}
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
		added := make([]float64, len(took[oursAdmission]))
		for i := range added {
			added[i] = took[oursAdmission][i] - took[plainAdmission][i]
		}
		suffix := fmt.Sprintf(", clients: %d", clients)
		a.r.Add("creation without a webhook"+suffix, "ms", took[plainAdmission]...)
		a.r.Add("creation"+suffix, "ms", took[oursAdmission]...)
		a.r.Add("added"+suffix, "ms", added...)
	}
	return nil
}

// block sends requests by several clients at once, each so many, and tells how many
// milliseconds each took.
func (a *admissions) block(ctx context.Context, namespace string, clients, each int) ([]float64, error) {
	took := make([]float64, clients*each)
	err := lab.Together(ctx, clients, clients, func(ctx context.Context, client int) error {
		for i := range each {
			_, elapsed, err := a.create(ctx, namespace)
			if err != nil {
				return err
			}
			took[client*each+i] = elapsed.Seconds() * 1000
		}
		return nil
	})
	return took, err
}
