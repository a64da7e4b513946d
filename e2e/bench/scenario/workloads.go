package scenario

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func workloads() Scenario {
	return Scenario{
		Name: "workloads", Title: "10,000 workloads: memory, a restart, and rest",
		Method: "10,000 Deployments with a ConfigMap each, created through the product. Memory is the peak (VmHWM) of a start with all of them, less that of a " +
			"start with the ConfigMaps alone. Then the product is started behind proxies, with nothing changed since it was stopped, and what it writes is counted. " +
			"Then it rests while Pods without owner come and go, about ten a second. Nobody else writes Deployments: the controllers that do do not run.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			w := &many{Bench: b, r: r, n: b.Size(10_000, 500)}
			for _, step := range []func(context.Context) error{w.memory, w.restart, w.rest} {
				if err := step(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

type many struct {
	*Bench
	r *report.Result
	n int
}

const manyNamespace = "workloads"

func (w *many) memory(ctx context.Context) error {
	if err := w.Product.Namespace(ctx, manyNamespace); err != nil {
		return err
	}
	w.Say("creating %d ConfigMaps", w.n)
	name := func(i int) string { return fmt.Sprintf("other-%05d", i) }
	err := lab.Fill(ctx, w.n, func(ctx context.Context, i int) error { return w.ConfigMap(ctx, manyNamespace, name(i), "hello") })
	if err != nil {
		return err
	}
	without, _, err := measureStart(ctx, w.Bench, product.Options{})
	if err != nil {
		return err
	}
	w.Say("creating %d Deployments", w.n)
	err = w.Started(ctx, product.Options{}, func() error {
		err := lab.Fill(ctx, w.n, func(ctx context.Context, i int) error {
			return w.Create(ctx, w.Product.Workload(lab.Workload{Namespace: manyNamespace, Name: name(i), Sources: []string{"configmap/" + name(i)}}))
		})
		if err != nil {
			return err
		}
		return w.Product.Work(ctx) // what was missed, if anything, is healed
	})
	if err != nil {
		return err
	}
	peaks := map[string][]float64{}
	for range w.Size(3, 1) {
		w.Say("starting with all of them")
		peak, _, err := measureStart(ctx, w.Bench, product.Options{})
		if err != nil {
			return err
		}
		for role := range peak {
			peaks[role] = append(peaks[role], peak[role]-without[role])
		}
	}
	for _, role := range roles(w.Product) {
		w.r.Add(report.New(fmt.Sprintf("%s: peak memory for %d workloads", role, w.n), "MiB", report.Of(peaks[role]...)).AtMost(report.Max, 25))
	}
	return nil
}

func (w *many) restart(ctx context.Context) error {
	w.Say("starting, counted")
	before := w.Product.Counter.Counts()
	err := w.Started(ctx, product.Options{Counted: true}, func() error { return lab.Pause(ctx, w.Span(20*time.Second, 5*time.Second)) })
	if err != nil {
		return err
	}
	requests := w.Product.Counter.Since(before)
	w.r.Add(report.One(fmt.Sprintf("writes at a restart with %d workloads", w.n), "requests", float64(requests.Writes().Without(" events", "selfsubject").Sum())).
		AtMost(report.Max, 0).Saying("all requests: %s", requests.Work()))
	return nil
}

func (w *many) rest(ctx context.Context) error {
	const namespace = "churn"
	if err := w.Namespace(ctx, namespace, nil); err != nil {
		return err
	}
	return w.Started(ctx, product.Options{}, func() error {
		if err := lab.Pause(ctx, w.Span(20*time.Second, 3*time.Second)); err != nil { // what the start cost is over
			return err
		}
		w.Say("resting")
		churning, stop := context.WithCancel(ctx)
		defer stop()
		var pods atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.churn(churning, namespace, &pods)
		}()
		before, err := cpuOf(w.Product)
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := lab.Pause(ctx, w.Span(time.Minute, 5*time.Second)); err != nil {
			return err
		}
		spent, err := cpuSince(w.Product, before)
		took := time.Since(begin)
		stop()
		<-ended
		if err != nil {
			return err
		}
		for _, role := range roles(w.Product) {
			w.r.Add(report.One(role+": CPU at rest", "% of a core", 100*spent[role]/took.Seconds()).AtMost(report.Max, 1).
				Saying("%d Pods came and went in %.0f s", pods.Load(), took.Seconds()))
		}
		return nil
	})
}

// churn makes Pods and takes them away until ctx ends.
func (w *many) churn(ctx context.Context, namespace string, count *atomic.Int64) {
	client, none := w.Client.CoreV1().Pods(namespace), int64(0)
	for i := 0; lab.Pause(ctx, 100*time.Millisecond) == nil; i++ {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app:1"}}},
		}
		if _, err := client.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			continue // the churn ends; whatever else, fewer are counted
		}
		if client.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &none}) == nil {
			count.Add(1)
		}
	}
}
