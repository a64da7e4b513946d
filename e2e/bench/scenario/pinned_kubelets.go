package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/e2e/bench/lab"
	"github.com/configstamp/configstamp/e2e/bench/product"
	"github.com/configstamp/configstamp/e2e/bench/report"
	"github.com/configstamp/configstamp/e2e/harness"
)

func pinnedKubelets() Scenario {
	return Scenario{
		Name: "pins-kubelets", Title: "What kubelets ask for, with 1,000 pods",
		Controllers: workloadControllers(),
		Method: "100 Deployments with a ConfigMap of their own and one that all share, 10 Pods of each, spread over 10 nodes. The kubelets' own code for ConfigMaps (package configmap of Kubernetes, " +
			"which watches what Pods name) reads what they need to start. Requests and open watches are counted by the API server's own metrics, ten seconds after all could start. " +
			"The floor is the same Pods that are not pinned.",
		Run: func(ctx context.Context, b *Bench, r *report.Result) error {
			k := &kubelets{Bench: b, r: r, workloads: b.Size(100, 20), program: b.File("kubelets")}
			if err := harness.BuildNested(ctx, "e2e/oracle", "./kubelets", k.program); err != nil {
				return err
			}
			return b.pinning(ctx, r, product.Options{}, func() error { return k.measure(ctx) })
		},
	}
}

type kubelets struct {
	*Bench
	r         *report.Result
	workloads int
	program   string
}

const (
	podsOfEach      = 10
	pinnedToRead    = "pins-read"
	unpinnedToRead  = "pins-read-without"
	sharedByAll     = "shared"
	allCouldStart   = "every Pod can start"
	afterTheyStart  = 10 * time.Second
	startAtTheWorst = 2 * time.Minute
)

func (k *kubelets) measure(ctx context.Context) error {
	if err := errors.Join(k.pinningNamespace(ctx, pinnedToRead), k.Namespace(ctx, unpinnedToRead, nil)); err != nil {
		return err
	}
	asked, watches := map[string]float64{}, map[string]float64{}
	for _, namespace := range []string{unpinnedToRead, pinnedToRead} {
		k.Say("%s", namespace)
		if err := k.fill(ctx, namespace); err != nil {
			return err
		}
		if err := k.read(ctx, namespace, asked, watches); err != nil {
			return err
		}
	}
	const floor = "the same without pins"
	name := fmt.Sprintf("%d pods of %d workloads: ", k.workloads*podsOfEach, k.workloads)
	k.r.Add(
		report.One(name+"watches of ConfigMaps that stay open", "watches", watches[pinnedToRead]).Over(floor, report.Of(watches[unpinnedToRead])),
		report.One(name+"requests for ConfigMaps until all could start", "requests", asked[pinnedToRead]).Over(floor, report.Of(asked[unpinnedToRead])),
	)
	return nil
}

// fill makes the Deployments, and Pods as their ReplicaSets would.
func (k *kubelets) fill(ctx context.Context, namespace string) error {
	if err := k.ConfigMap(ctx, namespace, sharedByAll, "hello"); err != nil {
		return err
	}
	deployments := make([]*appsv1.Deployment, k.workloads)
	err := lab.Fill(ctx, k.workloads, func(ctx context.Context, i int) (err error) {
		name := fmt.Sprintf("app-%03d", i)
		if err := k.ConfigMap(ctx, namespace, name, name); err != nil {
			return err
		}
		w := lab.Workload{Namespace: namespace, Name: name, Sources: []string{"configmap/" + sharedByAll, "configmap/" + name}}
		deployments[i], err = k.Client.AppsV1().Deployments(namespace).Create(ctx, w.Deployment(), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating Deployments: %w", err)
	}
	return lab.Fill(ctx, k.workloads*podsOfEach, func(ctx context.Context, i int) error {
		pod, err := k.Client.CoreV1().Pods(namespace).Create(ctx, lab.PodOf(deployments[i/podsOfEach]), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a Pod: %w", err)
		}
		if pinned := pod.Annotations[checksum.PinnedAnnotation] != ""; pinned != (namespace == pinnedToRead) {
			return fmt.Errorf("pod %s/%s: pinned is %t", namespace, pod.Name, pinned)
		}
		return nil
	})
}

// read has kubelets read what the Pods need.
func (k *kubelets) read(ctx context.Context, namespace string, asked, watches map[string]float64) error {
	before, err := k.Metrics(ctx)
	if err != nil {
		return err
	}
	process, err := lab.Start("kubelets", k.File(namespace+".log"), k.program, []string{"-kubeconfig", k.Cluster.Kubeconfig, "-namespace", namespace}, nil)
	if err != nil {
		return err
	}
	err = lab.Until(ctx, "Pods to start", startAtTheWorst, func(context.Context) error {
		if said := process.LogTail(10); !strings.Contains(said, allCouldStart) {
			return fmt.Errorf("the kubelets say: %s", said)
		}
		return nil
	})
	if err == nil {
		err = lab.Pause(ctx, afterTheyStart)
	}
	if err != nil {
		return errors.Join(err, process.Stop())
	}
	after, err := k.Metrics(ctx)
	of := `resource="configmaps"`
	watches[namespace] = lab.Sum(after, "apiserver_longrunning_requests", of, `verb="WATCH"`) - lab.Sum(before, "apiserver_longrunning_requests", of, `verb="WATCH"`)
	// Watches count as requests once they end.
	asked[namespace] = lab.Sum(after, "apiserver_request_total", of) - lab.Sum(before, "apiserver_request_total", of) + watches[namespace]
	return errors.Join(err, process.Stop())
}
