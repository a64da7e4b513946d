package scenario

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
)

func coalescing() Scenario {
	return Scenario{
		Name: "coalescing", Title: "Several edits, one rollout",
		Controllers: workloadControllers(),
		Method: "The product runs with its defaults. 15 edits of one ConfigMap within 1.5 s; then `kubectl apply` of one file with two ConfigMaps and the " +
			"Deployment that uses them, all three changed, the sources before the Deployment and the other way round. New ReplicaSets are counted " +
			"once nothing has happened for 10 s.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			const namespace = "coalescing"
			if err := b.Product.Namespace(ctx, namespace); err != nil {
				return err
			}
			return b.Started(ctx, product.Options{}, func() error {
				c := &coalesce{Bench: b, namespace: namespace}
				if err := c.burst(ctx, r); err != nil {
					return err
				}
				return c.applies(ctx, r)
			})
		},
	}
}

type coalesce struct {
	*Bench
	namespace string
}

// replicaSets are the UIDs of those of one app.
func (c *coalesce) replicaSets(ctx context.Context, app string) (int, error) {
	list, err := c.Client.AppsV1().ReplicaSets(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return 0, fmt.Errorf("listing ReplicaSets: %w", err)
	}
	return len(list.Items), nil
}

// quiet waits until the number of an app's ReplicaSets has been the same for
// some time, and returns it.
func (c *coalesce) quiet(ctx context.Context, app string) (int, error) {
	const still = 10 * time.Second
	last, since := -1, time.Now()
	for time.Since(since) < still {
		now, err := c.replicaSets(ctx, app)
		if err != nil {
			return 0, err
		}
		if now != last {
			last, since = now, time.Now()
		}
		if err := lab.Pause(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// workload keeps enough ReplicaSets for the counting to see them all.
func (c *coalesce) workload(app string, sources ...string) lab.Workload {
	return c.Product.Workload(lab.Workload{Namespace: c.namespace, Name: app, Sources: sources, Rolling: true})
}

func (c *coalesce) burst(ctx context.Context, r *report.Result) error {
	const app, edits = "burst", 15
	if err := c.ConfigMap(ctx, c.namespace, app, "0"); err != nil {
		return err
	}
	if err := c.Create(ctx, c.workload(app, "configmap/"+app)); err != nil {
		return err
	}
	templates, err := c.Templates(ctx, c.namespace)
	if err != nil {
		return err
	}
	defer templates.Stop()
	before, err := c.quiet(ctx, app)
	if err != nil {
		return err
	}
	var replicaSets, changes []float64
	for round := range c.Size(3, 1) {
		c.Say("15 edits in 1.5 s, round %d", round+1)
		counted := templates.Changes()
		for i := range edits {
			if err := c.Edit(ctx, c.namespace, app, fmt.Sprintf("%d-%d", round, i)); err != nil {
				return err
			}
			if err := lab.Pause(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
		after, err := c.quiet(ctx, app)
		if err != nil {
			return err
		}
		// A Deployment keeps ten old ReplicaSets, so those are counted only while
		// they are fewer; the template's changes are always counted.
		replicaSets, changes = append(replicaSets, float64(after-before)), append(changes, float64(templates.Since(counted).Total))
		before = after
	}
	r.Add(
		report.New("15 edits in 1.5 s: changes of the template", "rollouts", report.Of(changes...)).AtMost(report.Max, 1).AtLeast(report.Min, 1),
		report.New("15 edits in 1.5 s: ReplicaSets more than before", "ReplicaSets", report.Of(replicaSets...)).
			Saying("a Deployment keeps no more than ten old ReplicaSets"),
	)
	return nil
}

func (c *coalesce) applies(ctx context.Context, r *report.Result) error {
	for _, order := range []struct {
		app, name string
		first     bool
		most      float64
	}{
		{"sources-first", "one apply, sources first", true, 1},
		{"deployment-first", "one apply, Deployment first", false, 2},
	} {
		var found []float64
		rounds := c.Size(3, 1)
		before := 0
		for round := range rounds + 1 {
			if round > 0 {
				c.Say("%s, round %d", order.name, round)
			}
			if err := c.apply(ctx, order.app, order.first, round); err != nil {
				return err
			}
			after, err := c.quiet(ctx, order.app)
			if err != nil {
				return err
			}
			if round > 0 { // the first one creates
				found = append(found, float64(after-before))
			}
			before = after
		}
		r.Add(report.New(order.name+": new ReplicaSets", "ReplicaSets", report.Of(found...)).AtMost(report.Max, order.most).AtLeast(report.Min, 1))
	}
	return nil
}

func (c *coalesce) apply(ctx context.Context, app string, sourcesFirst bool, round int) error {
	workload := c.workload(app, "configmap/"+app+"-a", "configmap/"+app+"-b")
	deployment := workload.Deployment()
	deployment.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("registry.example.com/app:%d", round+1)
	objects := []runtime.Object{deployment}
	for i, name := range []string{app + "-a", app + "-b"} {
		source := lab.NewConfigMap(c.namespace, name, fmt.Sprint(round))
		if sourcesFirst {
			objects = append(objects[:i], source, deployment)
		} else {
			objects = append(objects, source)
		}
	}
	var manifest []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("writing a manifest: %w", err)
		}
		manifest = append(manifest, string(text))
	}
	file := c.File(app + ".yaml")
	if err := os.WriteFile(file, []byte(strings.Join(manifest, "---\n")), 0o600); err != nil {
		return fmt.Errorf("writing a manifest: %w", err)
	}
	command := exec.CommandContext(ctx, filepath.Join(c.Cluster.Programs, "kubectl"), "--kubeconfig", c.Cluster.Kubeconfig, "apply", "-f", file)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, out)
	}
	return nil
}
