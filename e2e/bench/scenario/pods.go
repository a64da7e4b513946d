package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
	"github.com/configstamp/configstamp/e2e/harness"
)

func pods() Scenario {
	return Scenario{
		Name: "pods", Title: "What 50,000 running pods really have",
		Method: "1,000 Deployments with a ConfigMap each, and 50 Pods of each with its stamps, which say that they run. The controller is started without --pods, and then with it. " +
			"Memory is read a minute after it worked; the live heap is what the last garbage collection left. Requests and CPU are those of the 40 seconds after that. " +
			"No Pod changes meanwhile.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			p := &running{Bench: b, r: r, workloads: b.Size(1000, 100), each: 50}
			if b.Given.Adapter.Name != "configstamp" {
				r.Skip("it does not tell what pods have")
				return nil
			}
			if err := p.fill(ctx); err != nil {
				return err
			}
			return p.compare(ctx)
		},
	}
}

type running struct {
	*Bench
	r               *report.Result
	workloads, each int
}

const podsNamespace = "pods"

// fill makes the workloads and their pods, and lets the controller follow pods.
func (p *running) fill(ctx context.Context) error {
	if err := p.Product.Namespace(ctx, podsNamespace); err != nil {
		return err
	}
	err := p.Started(ctx, product.Options{}, func() error {
		if err := p.Others(ctx, podsNamespace, p.workloads); err != nil {
			return err
		}
		return p.Product.Work(ctx) // what was missed, if anything, is healed
	})
	if err != nil {
		return err
	}
	deployments, err := p.Client.AppsV1().Deployments(podsNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Deployments: %w", err)
	}
	p.Say("creating %d Pods", len(deployments.Items)*p.each)
	err = lab.Fill(ctx, len(deployments.Items)*p.each, func(ctx context.Context, i int) error {
		of := &deployments.Items[i/p.each]
		return p.pod(ctx, &of.Spec.Template, of.Name, i%p.each)
	})
	if err != nil {
		return err
	}
	name := metav1.ObjectMeta{Name: "bench-pods"}
	if _, err := p.Client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}}}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a ClusterRole: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: harness.OwnNamespace, Name: "configstamp"}}}
	if _, err := p.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making a ClusterRoleBinding: %w", err)
	}
	return nil
}

// pod makes one that runs, as its ReplicaSet and its kubelet would.
func (p *running) pod(ctx context.Context, template *corev1.PodTemplateSpec, workload string, number int) error {
	const hash = "7d9c8b6f5d"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%s-%05d", workload, hash, number), Annotations: template.Annotations,
			Labels: map[string]string{"app": workload, "pod-template-hash": hash},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload + "-" + hash, UID: "5d3f1f0e-0000-4000-8000-000000000000",
				Controller: ptr.To(true)}},
		},
		Spec: template.Spec,
	}
	pod.Spec.SchedulerName = "nobody"
	client := p.Client.CoreV1().Pods(podsNamespace)
	made, err := client.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a Pod: %w", err)
	}
	now := metav1.Now()
	made.ResourceVersion = "" // nobody else writes what is written here
	made.Status.Phase = corev1.PodRunning
	made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	made.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", Ready: true, Image: "registry.example.com/app:1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}}
	if _, err := client.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the status of a Pod: %w", err)
	}
	return nil
}

// cost is what the controller takes in one run.
type cost struct{ rss, peak, heap, requests, cpu float64 }

func (p *running) compare(ctx context.Context) error {
	all := map[bool][]cost{}
	for _, on := range []bool{false, true} {
		p.Say("with --pods: %t", on)
		one, err := p.measure(ctx, on)
		if err != nil {
			return err
		}
		all[on] = append(all[on], one)
	}
	figure := func(name, unit string, of func(cost) float64) {
		values := map[bool][]float64{}
		for on, costs := range all {
			for _, one := range costs {
				values[on] = append(values[on], of(one))
			}
		}
		p.r.Add(report.New("controller: "+name, unit, report.Of(values[true]...)).Over("without --pods", report.Of(values[false]...)))
	}
	figure("memory at rest", "MiB", func(c cost) float64 { return c.rss })
	figure("peak memory of a start", "MiB", func(c cost) float64 { return c.peak })
	figure("live heap", "MiB", func(c cost) float64 { return c.heap })
	figure("requests in 40 seconds at rest", "requests", func(c cost) float64 { return c.requests })
	figure("CPU at rest", "% of a core", func(c cost) float64 { return c.cpu })
	return nil
}

// measure starts the product, and tells what its controller takes. With pods, all are known
// and counted by then.
func (p *running) measure(ctx context.Context, on bool) (one cost, err error) {
	err = p.Started(ctx, product.Options{Pods: on, Counted: true}, func() error {
		if err := lab.Pause(ctx, p.Span(time.Minute, 30*time.Second)); err != nil {
			return err
		}
		values, err := p.Product.Metrics(ctx, "controller")
		if err != nil {
			return err
		}
		known := 0.0
		for series, value := range values {
			if strings.HasPrefix(series, "configstamp_pods{") {
				known += value
			}
		}
		if on && int(known) != p.workloads*p.each {
			return fmt.Errorf("%.0f pods are counted, want %d", known, p.workloads*p.each)
		}
		controller := p.Product.Processes()["controller"]
		if one.rss, err = controller.MiB(); err != nil {
			return err
		}
		if one.peak, err = controller.PeakMiB(); err != nil {
			return err
		}
		one.heap = liveHeap(ctx, p.Bench)
		before, spent, begin := p.Product.Counter.Counts(), 0.0, time.Now()
		if spent, err = controller.CPU(); err != nil {
			return err
		}
		if err := lab.Pause(ctx, p.Span(40*time.Second, 20*time.Second)); err != nil {
			return err
		}
		after, err := controller.CPU()
		one.cpu = 100 * (after - spent) / time.Since(begin).Seconds()
		one.requests = float64(p.Product.Counter.Since(before).Sum())
		return err
	})
	return one, err
}
