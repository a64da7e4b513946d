package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/e2e/harness"
)

// A DaemonSet's pod on a node that is lost can neither go nor come: the change
// goes on without it.
func TestSteps_ALostNodeHoldsNoChange(t *testing.T) {
	product := run.Exclusive(t)
	options := harness.Usual()
	options.Controller = append(options.Controller, "--step=1", "--soak=1s")
	harness.Must(t, product.Restart(t.Context(), options))
	s := run.Space(t)
	var lost atomic.Bool
	node(t, s, "alive", func() bool { return true })
	node(t, s, "lost", func() bool { return !lost.Load() })

	s.Set("configmap/c", "k", "1")
	agent := workload("DaemonSet", "agent", envFrom("configmap/c"))
	for old, changed := range map[string]string{
		"metadata: {name: agent":           `metadata: {annotations: {configstamp.dev/order: "-1"}, name: agent`,
		"revisionHistoryLimit: 1000":       "updateStrategy: {rollingUpdate: {maxUnavailable: 2}}", // or its own controller waits for the node
		"terminationGracePeriodSeconds: 0": "terminationGracePeriodSeconds: 600",                   // or nobody waits for a kubelet
	} {
		agent = strings.Replace(agent, old, changed, 1)
	}
	s.Create(agent)
	s.Create(deployment("next", "configmap/c"))
	s.Eventually("waiting until both are available", func() error {
		daemons, err := run.Client.AppsV1().DaemonSets(s.Namespace).Get(t.Context(), "agent", metav1.GetOptions{})
		harness.Must(t, err)
		next, err := run.Client.AppsV1().Deployments(s.Namespace).Get(t.Context(), "next", metav1.GetOptions{})
		harness.Must(t, err)
		if daemons.Status.NumberAvailable != 2 || next.Status.AvailableReplicas != 1 {
			return fmt.Errorf("the DaemonSet has %d pods, want 2; the Deployment %d, want 1", daemons.Status.NumberAvailable, next.Status.AvailableReplicas)
		}
		return nil
	})
	before := s.Counts()
	lost.Store(true)
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"daemonset/agent": 1, "deployment/next": 1})
	daemons, err := run.Client.AppsV1().DaemonSets(s.Namespace).Get(t.Context(), "agent", metav1.GetOptions{})
	harness.Must(t, err)
	if daemons.Status.UpdatedNumberScheduled != 1 {
		t.Errorf("%d pods of the DaemonSet are new, want 1: the other's node was to be lost", daemons.Status.UpdatedNumberScheduled)
	}
}

// node is one without a kubelet. While it is there, every pod of the space on it
// is said to run, or goes when it is to.
func node(t *testing.T, s *harness.Space, name string, there func() bool) {
	t.Helper()
	nodes, pods := run.Client.CoreV1().Nodes(), run.Client.CoreV1().Pods(s.Namespace)
	_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	harness.Must(t, err)
	t.Cleanup(func() { harness.Must(t, nodes.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	go func() { // an error is one more try
		for ctx := t.Context(); ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			ready := "False"
			if there() {
				ready = "True"
			}
			status := fmt.Sprintf(`{"status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"},"capacity":{"cpu":"8","memory":"8Gi","pods":"110"},
				"conditions":[{"type":"Ready","status":%q,"reason":"E2E","lastHeartbeatTime":%q}]}}`, ready, time.Now().UTC().Format(time.RFC3339))
			_, _ = nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			on, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
			if err != nil || !there() {
				continue
			}
			for i := range on.Items {
				pod := &on.Items[i]
				if pod.DeletionTimestamp != nil {
					_ = pods.Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
				} else if pod.Status.Phase == corev1.PodPending {
					_, _ = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, fmt.Appendf(nil, `{"status":{"phase":"Running",
						"conditions":[{"type":"Ready","status":"True"},{"type":"ContainersReady","status":"True"}],
						"containerStatuses":[{"name":"app","image":"x","imageID":"x","ready":true,"started":true,"restartCount":0,"state":{"running":{"startedAt":%q}}}]}}`,
						time.Now().UTC().Format(time.RFC3339)), metav1.PatchOptions{}, "status")
				}
			}
		}
	}()
}
