package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func follow() Scenario {
	const span = 30 * time.Second
	return Scenario{
		Name: "follow", Title: "One source, 1,000 workloads that roll",
		Method: "Who measures writes the status of Deployments, as their controller would. CPU of each process over " + span.String() + " at rest; for an edit that concerns one workload; " +
			"for an edit that concerns all, which begin at once, until each has begun; and over " + span.String() + " in which all roll and make no progress. There are no Pods, so no rollout becomes healthy. " +
			"Memory is VmHWM at the end.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			if !b.Product.Adapter.Follows {
				r.Skip("%s follows no rollouts", b.Product.Adapter.Name)
				return nil
			}
			f := &followed{Bench: b, r: r, n: b.Size(1000, 100), span: span}
			return b.Started(ctx, product.Options{Immediate: true, Following: true}, func() error { return f.measure(ctx) })
		},
	}
}

// followed is a namespace whose workloads roll, as far as their statuses tell.
type followed struct {
	*Bench
	r    *report.Result
	n    int
	span time.Duration
}

const oursFollowed = "follow"

func (f *followed) measure(ctx context.Context) error {
	if err := f.fill(ctx); err != nil {
		return err
	}
	templates, err := f.Templates(ctx, oursFollowed)
	if err != nil {
		return err
	}
	defer templates.Stop()
	rolls := func(source string, n int) func() error {
		return func() error {
			before := templates.Changes()
			if err := f.Edit(ctx, oursFollowed, source, "1"); err != nil {
				return err
			}
			_, err := templates.Wait(ctx, before, n, 4*time.Minute)
			return err
		}
	}
	rest := func() error { return lab.Pause(ctx, f.span) }
	for _, step := range []struct {
		what string
		each int // "CPU for each"; 0: over a span
		do   func() error
	}{
		{"at rest", 0, rest},
		{"for an edit of one", 1, rolls("one", 1)},
		{"until each has begun", f.n, rolls("shared", f.n)},
		{"while all roll", 0, func() error { return errors.Join(f.statuses(ctx, f.n, false), rest()) }},
	} {
		f.Say("%s", step.what)
		spent, err := f.Spent(step.do)
		if err != nil {
			return err
		}
		for _, role := range roles(f.Product) {
			if step.each == 0 {
				f.r.Add(fmt.Sprintf("%s: CPU of the %s in %s", step.what, role, f.span), "ms", spent[role])
			} else {
				f.r.Add(fmt.Sprintf("%s: CPU of the %s for each", step.what, role), "ms", spent[role]/float64(step.each))
			}
		}
	}
	for _, role := range roles(f.Product) {
		peak, err := f.Product.Processes()[role].PeakMiB()
		if err != nil {
			return err
		}
		f.r.Add(role+": peak memory", "MiB", peak)
	}
	return nil
}

// fill makes the workloads, all of which are rolled out. All use one source, and one more another
// one.
func (f *followed) fill(ctx context.Context) error {
	if err := f.Product.Namespace(ctx, oursFollowed); err != nil {
		return err
	}
	if err := errors.Join(f.ConfigMap(ctx, oursFollowed, "shared", "0"), f.ConfigMap(ctx, oursFollowed, "one", "0")); err != nil {
		return err
	}
	err := lab.Fill(ctx, f.n+1, func(ctx context.Context, i int) error {
		source := "configmap/shared"
		if i == f.n {
			source = "configmap/one"
		}
		return f.Create(ctx, f.Product.Workload(lab.Workload{Namespace: oursFollowed, Name: nameOf(i), Sources: []string{source}, Rolling: true}))
	})
	if err != nil {
		return err
	}
	return errors.Join(f.statuses(ctx, f.n+1, true), lab.Pause(ctx, 10*time.Second))
}

// statuses tells of the first workloads that they are rolled out, or are on their way.
func (f *followed) statuses(ctx context.Context, n int, out bool) error {
	client := f.Client.AppsV1().Deployments(oursFollowed)
	return lab.Fill(ctx, n, func(ctx context.Context, i int) error {
		deployment, err := client.Get(ctx, nameOf(i), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading a Deployment whose status is written: %w", err)
		}
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		if !out {
			deployment.Status.Replicas, deployment.Status.UnavailableReplicas = 2, 1
			deployment.Status.Conditions[1].Reason = "ReplicaSetUpdated"
		}
		_, err = client.UpdateStatus(ctx, deployment, metav1.UpdateOptions{})
		return err
	})
}
