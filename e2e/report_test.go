package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/report"
)

// ConfigRollouts, on the real API server. docs/kubectl.md#configrollouts says what they promise.

// conditions are the types of those that are true.
func conditions(r *report.ConfigRollout) (all []string) {
	for _, c := range r.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			all = append(all, c.Type)
		}
	}
	return all
}

func entryOf(r *report.ConfigRollout, workload string) report.Entry {
	for _, e := range r.Status.Workloads {
		if slices.Contains(e.Names, workload) {
			return e
		}
	}
	return report.Entry{}
}

// nextSecond waits until an edit is later than the one before: times have whole seconds.
func nextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }

func TestReport_AnEditIsReportedFromThenOn(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	s.Set("configmap/c", "A", "1", "unused", "1")
	s.Set("secret/s", "k", "1")
	s.Create(podless("all", "configmap/c"))
	s.Create(strings.Replace(workload("Deployment", "one", "env: [{name: A, valueFrom: {configMapKeyRef: {name: c, key: A}}}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}]"), "replicas: 1", "replicas: 0", 1))
	s.Settled("deployment/all", "deployment/one")
	if _, err := s.ConfigRollout("configmap/c"); !apierrors.IsNotFound(err) {
		t.Errorf("a source for which nothing has rolled: %v", err)
	}
	nextSecond()
	s.Set("configmap/c", "A", "2", "unused", "1")
	s.Set("secret/s", "k", "2")
	first := s.WantReport("configmap/c", report.Complete, nil)
	edited := s.Get("configmap/c")
	if is := first.OwnerReferences; len(is) != 1 || is[0].UID != edited.GetUID() || is[0].Controller != nil || is[0].BlockOwnerDeletion != nil {
		t.Errorf("owned by %+v", is)
	}
	status := &first.Status
	if got := edited.GetManagedFields()[0]; !status.EditedAt.Equal(got.Time) || status.Manager != got.Manager {
		t.Errorf("edited at %s by %q, want %s and %q", status.EditedAt, status.Manager, got.Time, got.Manager)
	}
	if diff := cmp.Diff([]string{"A"}, status.Keys); diff != "" {
		t.Error("keys:", diff)
	}
	if status.Total != 2 || status.Done != 2 || status.Failed != 0 || !slices.Equal(conditions(first), []string{report.Ready}) || len(status.History) != 0 {
		t.Errorf("it says %+v", status)
	}
	if keys := s.WantReport("secret/s", report.Complete, nil).Status.Keys; keys != nil {
		t.Errorf("keys of a Secret: %q", keys)
	}

	// An edit that rolls less, and one that rolls nothing, are reported, too. The last one has no history.
	nextSecond()
	s.Set("configmap/c", "A", "2", "unused", "2")
	second := s.WantReport("configmap/c", report.Complete, first)
	if is := second.Status; len(is.History) != 1 || is.History[0].Outcome != report.Complete || is.History[0].Done != 2 || !is.History[0].EditedAt.Equal(status.EditedAt) {
		t.Errorf("history: %+v", is.History)
	}
	nextSecond()
	s.Delete("deployment/all")
	wantTotal(s, "configmap/c", 1)
	s.Set("configmap/c", "A", "2", "unused", "3")
	third := s.WantReport("configmap/c", report.Complete, second)
	nextSecond()
	s.Set("configmap/c", "A", "2", "unused", "4")
	if is := s.WantReport("configmap/c", report.Complete, third).Status; len(is.History) != 2 {
		t.Errorf("an edit that rolled nothing is in the history: %+v", is.History)
	}
	if is := s.TryKubectl("get", "cfr"); !strings.Contains(is.Stdout, "STATE") || slices.ContainsFunc(strings.Split(is.Stdout, "\n"), func(line string) bool { return len(line) > 80 }) {
		t.Errorf("kubectl get prints\n%s%s", is.Stdout, is.Stderr)
	}

	// It is deleted with its source.
	s.Delete("configmap/c")
	s.Eventually("waiting for the report to be deleted", func() error {
		if _, err := s.ConfigRollout("configmap/c"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %w", err)
		}
		return nil
	})
}

// wantTotal waits until a report counts so many workloads.
func wantTotal(s *harness.Space, source string, total int32) {
	s.Eventually("waiting for the report to count", func() error {
		if is, err := s.ConfigRollout(source); err != nil || is.Status.Total != total {
			return errors.Join(err, fmt.Errorf("it says %+v", is))
		}
		return nil
	})
}

func TestReport_WhatIsHeldSaysWhyAndWhatIsForgedIsRepaired(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	window := time.Now().UTC().AddDate(0, 0, 3).Weekday().String()[:3] + " 00:00-01:00 UTC"
	s.Set("configmap/c", "k", "1")
	s.SetPolicy("namespace", settings{"window": window})
	s.Create(podless("a", "configmap/c"))
	s.Create(podless("b", "configmap/c"))
	s.Create(withPolicy(podless("watcher", "configmap/c"), settings{"mode": "observe"}))
	s.Create(withPolicy(podless("paused", "configmap/c"), settings{"pause": "true"}))
	s.Settled("deployment/a", "deployment/b", "deployment/watcher", "deployment/paused")
	s.Set("configmap/c", "k", "2")
	is := s.WantReport("configmap/c", report.Held, nil)
	if is.Status.Total != 3 || is.Status.Done != 0 || !slices.Equal(conditions(is), []string{report.Reconciling}) {
		t.Errorf("it says %+v", is.Status)
	}
	held := entryOf(is, "deployment/a")
	if held.State != report.Held || held.Reason != "window" || held.Count != 2 || held.Since == nil || held.Until == nil || held.Message != "configstamp.dev/window on the Namespace holds it" {
		t.Errorf("held by a window: %+v", held)
	}
	if e := entryOf(is, "deployment/watcher"); e.State != report.Held || e.Reason != "observe-mode" {
		t.Errorf("only observed: %+v", e)
	}
	if e := entryOf(is, "deployment/paused"); e.State != report.Held || e.Reason != "pause" || e.Message != "configstamp.dev/pause holds it" {
		t.Errorf("paused: %+v", e)
	}

	forged := s.Get("configrollout/configmap-c")
	status := forged.Object["status"].(map[string]any)
	status["done"], status["total"] = int64(7), int64(7)
	status["conditions"] = []any{map[string]any{"type": "Ready", "status": "True", "reason": "Complete", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}}
	to := run.Dynamic.Resource(report.GroupVersion().WithResource(report.Resource)).Namespace(s.Namespace)
	_, err := to.UpdateStatus(context.Background(), forged, metav1.UpdateOptions{})
	harness.Must(t, err)
	if again := s.WantReport("configmap/c", report.Held, nil); again.Status.Total != 3 || !slices.Equal(conditions(again), []string{report.Reconciling}) {
		t.Errorf("forged, it says %+v", again.Status)
	}
	s.Delete("configrollout/configmap-c")
	s.WantReport("configmap/c", report.Held, nil)

	s.DropPolicy("namespace", settings{"window": window})
	s.DropPolicy("deployment/paused", settings{"pause": "true"})
	if done := s.WantReport("configmap/c", report.Complete, nil); done.Status.Done != 3 {
		t.Errorf("released, it says %+v", done.Status)
	}
	s.Label("")
	s.WantReport("configmap/c", report.Unused, nil)
}

func TestReport_WhatIsAppliedIsFilledIn(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	applied := func(name, kind, source string) string {
		return fmt.Sprintf("apiVersion: configstamp.dev/v1alpha1\nkind: ConfigRollout\nmetadata: {name: %s}\nspec: {source: {kind: %s, name: %s}}\n", name, kind, source)
	}
	s.Set("configmap/c", "k", "1")
	s.Create(deployment("d", "configmap/c"))
	s.Settled("deployment/d")
	s.Apply(applied("configmap-c", "ConfigMap", "c"))
	if is := s.WantReport("configmap/c", report.Complete, nil); is.Status.ObservedGeneration != is.Generation || is.OwnerReferences != nil {
		t.Errorf("it says %+v", is)
	}
	s.Apply(applied("secret-later", "Secret", "later"))
	s.WantReport("secret/later", report.Unused, nil)
	long := strings.Repeat("a", 250)
	s.Apply(applied("configmap-"+long[:222]+"-0123456789abcdefabcd", "ConfigMap", long))
	for what, manifest := range map[string]string{
		"another name":        applied("c", "ConfigMap", "c"),
		"another long name":   applied("configmap-b-0123456789abcdefabcd", "ConfigMap", long),
		"another source":      applied("configmap-c", "ConfigMap", "d"),
		"a source that moves": applied("configmap-c", "Secret", "c"),
	} {
		if result := s.TryKubectlInput(manifest, "apply", "-f", "-"); result.Code == 0 {
			t.Errorf("%s is taken: %s", what, result.Stdout)
		}
	}
}

func TestReport_WhoMayDoWhat(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	for role, verbs := range map[string][]string{"view": {"get", "list", "watch"}, "edit": {"get", "list", "watch", "create", "update", "patch", "delete"}} {
		s.Kubectl("create", "rolebinding", role, "--clusterrole="+role, "--user="+role)
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			s.Eventually("waiting for the roles of "+role, func() error {
				answer := s.TryKubectl("auth", "can-i", verb, "configrollouts", "--as="+role)
				if may := strings.TrimSpace(answer.Stdout) == "yes"; may != slices.Contains(verbs, verb) {
					return fmt.Errorf("%s of %s: %q", verb, role, answer.Stdout)
				}
				return nil
			})
		}
		if answer := s.TryKubectl("auth", "can-i", "update", "configrollouts", "--subresource=status", "--as="+role); strings.TrimSpace(answer.Stdout) == "yes" {
			t.Errorf("%s may forge a status", role)
		}
	}
	thief, rollouts := run.Stolen(t), "/apis/configstamp.dev/v1alpha1/namespaces/"
	body := func(namespace, owner string) string {
		return fmt.Sprintf(`{"apiVersion":"configstamp.dev/v1alpha1","kind":"ConfigRollout","metadata":{"name":"configmap-c","namespace":%q%s},"spec":{"source":{"kind":"ConfigMap","name":"c"}}}`, namespace, owner)
	}
	s.KubectlInput(body(s.Namespace, ""), "create", "-f", "-")
	object := rollouts + s.Namespace + "/configrollouts/configmap-c"
	heeded(t, thief, request{verb: "DELETE", path: object})
	for what, test := range map[string]struct {
		asks   request
		saying string
	}{
		"a report is deleted":      {request{verb: "DELETE", path: object}, "configstamp deletes no ConfigRollout"},
		"its spec is written":      {request{verb: "PUT", path: object, contentType: asObject, body: body(s.Namespace, "")}, byRoles},
		"all are deleted":          {request{verb: "DELETE", path: rollouts + s.Namespace + "/configrollouts"}, byRoles},
		"one in another namespace": {request{verb: "POST", path: rollouts + "kube-system/configrollouts", contentType: asObject, body: body("kube-system", "")}, "in the namespaces that it may serve"},
		"one that another owns": {request{verb: "POST", path: rollouts + s.Namespace + "/configrollouts", contentType: asObject,
			body: body(s.Namespace, `,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"d","uid":"x"}]`)}, "belongs to its source"},
	} {
		t.Run(what, func(t *testing.T) { wantRefused(t, test.asks.send(t, thief), test.saying) })
	}
}
