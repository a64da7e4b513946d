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
	"github.com/configstamp/configstamp/internal/rollout"
)

// A DaemonSet's pod on a node that is lost can neither go nor come: the change
// goes on without it, as soon as the node is known to be lost.
func TestSteps_ALostNodeHoldsNoChange(t *testing.T) {
	product := run.Exclusive(t)
	run := run.Of(t)
	options := harness.Usual()
	options.Controller = append(options.Controller, "--step=1", "--soak=1s")
	harness.Must(t, product.Restart(t.Context(), options))
	s := run.Space(t)
	var dead, known atomic.Bool
	node(t, s, "alive", new(atomic.Bool), new(atomic.Bool))
	node(t, s, "lost", &dead, &known)

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
	// With each new node a DaemonSet falls back. Until it has been calm for a while after that, others go before it.
	time.Sleep(rollout.CalmAfter + 2*time.Second)
	before := s.Counts()
	dead.Store(true)
	s.Set("configmap/c", "k", "2")
	s.Eventually("waiting until the DaemonSet has its new pod on the node that is alive", func() error {
		daemons, err := run.Client.AppsV1().DaemonSets(s.Namespace).Get(t.Context(), "agent", metav1.GetOptions{})
		harness.Must(t, err)
		if status := daemons.Status; status.ObservedGeneration != daemons.Generation || status.UpdatedNumberScheduled != 1 || status.NumberAvailable == 0 {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
	time.Sleep(5 * time.Second) // many times the soak
	if now := s.Counts()["deployment/next"]; now.Rolls != before["deployment/next"].Rolls {
		t.Error("the next one rolled while a node that is said to be ready had no new pod")
	}
	known.Store(true)
	s.WantRolls(before, rolls{"daemonset/agent": 1, "deployment/next": 1})
}

// node is one without a kubelet. Until it is dead, every pod of the space on it is
// said to run, or goes when it is to; until that is known, it is said to be ready.
func node(t *testing.T, s *harness.Space, name string, dead, known *atomic.Bool) {
	t.Helper()
	nodes, pods := s.Run.Client.CoreV1().Nodes(), s.Run.Client.CoreV1().Pods(s.Namespace)
	_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	harness.Must(t, err)
	t.Cleanup(func() { harness.Must(t, nodes.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	go func() { // an error is one more try
		for ctx := t.Context(); ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			ready := "True"
			if known.Load() {
				ready = "False"
			}
			status := fmt.Sprintf(`{"status":{"allocatable":{"cpu":"8","memory":"8Gi","pods":"110"},"capacity":{"cpu":"8","memory":"8Gi","pods":"110"},
				"conditions":[{"type":"Ready","status":%q,"reason":"E2E","lastHeartbeatTime":%q}]}}`, ready, time.Now().UTC().Format(time.RFC3339))
			_, _ = nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			on, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
			if err != nil || dead.Load() {
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
