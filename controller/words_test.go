package controller

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// What somebody's webhook, policy or controller says may quote the plain env of a
// template, and so may the kubelet of a container. None of it comes into an event,
// the log or a metric.
func TestWords_NobodysAreRepeated(t *testing.T) {
	const secret = "hunter2-S3CR3T"
	quoted := "env PASSWORD=" + secret + " is not allowed"
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	page, _, err := workload.Pods([]byte(`{"kind": "PodList", "items": [{"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "app"}]}, "status": {
		"message": "` + quoted + `",
		"containerStatuses": [{"name": "app", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "` + quoted + `"}}, "lastState": {"terminated": {"message": "` + quoted + `"}}}]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	denial := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReason(quoted),
		Message: `admission webhook "teams.example.com" denied the request: ` + quoted,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: quoted, Field: "spec.template.spec.containers[0].env[0].value"}}}}}
	// hangs has a rollout fail by its own controller, with one new pod that is so.
	hangs := func(pod string) func(*cluster, workload.Ref) {
		page, _, err := workload.Pods([]byte(`{"items": [{"metadata": {"name": "new"}, ` + strings.ReplaceAll(pod, "QUOTED", quoted) + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return func(c *cluster, ref workload.Ref) {
			c.pod = page[0]
			c.objects[ref]["status"] = map[string]any{"observedGeneration": 100.0, "replicas": 2.0, "updatedReplicas": 1.0, "conditions": []any{
				map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": quoted, "lastTransitionTime": "2100-01-01T00:00:00Z"},
			}}
		}
	}
	const mended = "either way it rolls out by itself" // which is untrue where the content is not at fault
	for sentence, test := range map[string]struct {
		happens func(c *cluster, ref workload.Ref)
		want    string // an event
		not     string // in any event of a failure
	}{
		"a webhook denies": {func(c *cluster, _ workload.Ref) { c.refusal = fmt.Errorf("PATCH: %w", denial) },
			`ReadmissionFailing re-admission keeps failing, and configstamp keeps trying: admission webhook "teams.example.com" refused: status code 403, at spec.template.spec.containers[0].env[0].value`, ""},
		"a policy denies": {func(c *cluster, _ workload.Ref) {
			c.refusal = apierrors.NewForbidden(deployments, "d", errors.New("ValidatingAdmissionPolicy 'no-env' with binding 'everywhere' denied request: "+quoted))
		}, `ValidatingAdmissionPolicy "no-env" refused: Forbidden (403)`, ""},
		"a conversion fails": {func(c *cluster, _ workload.Ref) {
			c.refusal = apierrors.NewInternalError(errors.New("conversion webhook failed: " + quoted))
		},
			"the API server failed: InternalError (500)", ""},
		"its controller says that it has failed": {func(c *cluster, ref workload.Ref) {
			c.objects[ref]["status"] = map[string]any{"observedGeneration": 100.0, "replicas": 2.0, "updatedReplicas": 1.0, "conditions": []any{
				map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": quoted},
				map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": quoted, "lastTransitionTime": "2100-01-01T00:00:00Z"},
			}}
		}, "ReplicaFailure: FailedCreate", mended},
		"its pods have no node": {hangs(`"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "QUOTED"}]}`),
			"Unschedulable", mended},
		"a readiness gate holds its pods": {hangs(`"spec": {"nodeName": "n", "readinessGates": [{"conditionType": "example.com/ready"}], "containers": [{"name": "app"}]},
			"status": {"conditions": [{"type": "ContainersReady", "status": "True", "message": "QUOTED"}, {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"}],
			"containerStatuses": [{"name": "app", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]}`),
			"example.com/ready", mended},
		"its pods crash until its controller gives up": {hangs(`"spec": {"nodeName": "n", "containers": [{"name": "app"}]}, "status": {"containerStatuses": [{"name": "app", "restartCount": 6,
			"state": {"running": {"startedAt": "2100-01-01T00:00:00Z"}}, "lastState": {"terminated": {"reason": "Error", "exitCode": 2, "message": "QUOTED"}}}]}`),
			"Error with exit code 2", ""},
		"its controller has a word of its own": {func(c *cluster, ref workload.Ref) {
			c.objects[ref]["status"] = map[string]any{"observedGeneration": 100.0, "replicas": 2.0, "updatedReplicas": 1.0, "conditions": []any{
				map[string]any{"type": "Progressing", "status": "False", "reason": quoted, "message": quoted, "lastTransitionTime": "2100-01-01T00:00:00Z"},
			}}
		}, "pods are missing", mended},
		"its containers crash": {func(c *cluster, ref workload.Ref) {
			c.pod = page[0]
			c.objects[ref]["status"] = map[string]any{"observedGeneration": 100.0, "replicas": 2.0, "updatedReplicas": 1.0}
		}, "RolloutFailed the rollout has failed: container app: CrashLoopBackOff", ""},
		"its pods may not be listed": {func(c *cluster, _ workload.Ref) {
			c.unseen = fmt.Errorf("LIST pods in shop: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(quoted)))
		}, "PodsUnseen", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			var log bytes.Buffer
			ctx := klog.NewContext(t.Context(), logr.FromSlogHandler(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.Level(-7)})))
			c := newCluster(t)
			c.write("c", map[string]string{"k": "old"})
			d := c.deploy("d", "c")
			spec := c.objects[d]["spec"].(map[string]any)
			spec["replicas"], spec["selector"] = 2.0, map[string]any{"matchLabels": map[string]any{"app": "d"}}
			containers := spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
			containers[0].(map[string]any)["env"] = []any{map[string]any{"name": "PASSWORD", "value": secret}}
			h := newHouse(t, c)
			h.scraped = prometheus.NewRegistry()
			h.Controller = newController(Options{
				Policy: c.policy, Settle: settle, Workers: 1, Clock: h.clock,
				Limits: rollout.Limits{Step: 1, Unsettled: rollout.Number(10), UnsettledPerNamespace: 9, Soak: 10 * time.Second, CrashDeadline: 30 * time.Second, RolloutDeadline: time.Hour},
			}, c, c, c, c, h.events, h.scraped)
			h.see(t, d)
			h.leads.Store(true)
			h.planned(func(p *rollout.Planner) { p.Lead(h.index.All(), h.clock.Now()) })
			h.mustSync(t, d) // it is on record
			c.write("c", map[string]string{"k": "new"})
			h.Changed("shop", configMap("c"))
			test.happens(c, d)
			for range 60 {
				h.cycle(ctx)
				h.queue.Add(d)
				for h.queue.Len() > 0 {
					h.next(ctx)
				}
				h.see(t, d)
				c.pod.Stamps = h.index.Get(d).Records.Stamps
				h.clock.Step(2 * time.Second)
			}
			_, said := h.happened()
			if !slices.ContainsFunc(said, func(event string) bool { return strings.Contains(event, test.want) }) {
				t.Errorf("no event says %q: %q", test.want, said)
			}
			if text := strings.Join(said, "\n"); test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("an event says %q: %s", test.not, text)
			}
			metrics, err := h.scraped.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for what, text := range map[string]string{"an event": strings.Join(said, "\n"), "the log": log.String(), "a metric": fmt.Sprint(metrics)} {
				if strings.Contains(text, secret) {
					t.Errorf("%s repeats it:\n%s", what, text)
				}
			}
		})
	}
}

// A change that some or all workloads failed with is no good news.
func TestTellNews_AChangeThatEndsWithFailuresWarns(t *testing.T) {
	for name, test := range map[string]struct {
		settled, broken int
		rolledOut       int
		words           []string
	}{
		"all are healthy": {settled: 2, rolledOut: 1},
		"some failed":     {settled: 1, broken: 2, words: []string{"1 of 3"}},
		"all failed":      {broken: 2, words: []string{"0 of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, at := fleet(t, 2)
			w.controller.tellNews(&rollout.Orders{Finished: []rollout.News{{Source: at, Settled: test.settled, Broken: test.broken}}})
			w.wantHeard("ChangeRolledOut", test.rolledOut)
			w.wantHeard("ChangeIncomplete", 1-test.rolledOut, test.words...)
		})
	}
}
