package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/report"
)

// Reports while leaders are killed, and while they cannot be written.

// Content that fails halts. From then on no version of the report, from any leader, is Settling or Complete, or counts
// more workloads as done or failed than the cluster has.
func TestReport_LeadersThatAreKilledSayNothingFalse(t *testing.T) {
	product := run.Exclusive(t)
	s, r := run.Space(t), run.Of(t)
	options := harness.Usual()
	options.Controller = slices.Concat(options.Controller, []string{"--step=1", "--rollout-deadline=8s", "--crash-deadline=4s", "--soak=1s"})
	harness.Must(t, product.Restart(t.Context(), options))
	s.Set("configmap/c", "k", "1")
	names := []string{"deployment/a", "deployment/b", "deployment/d"}
	for _, name := range names {
		s.Create(deployment(strings.TrimPrefix(name, "deployment/"), "configmap/c"))
	}
	s.Settled(names...)
	s.Set("configmap/c", "k", "2") // no Pod ever runs here, so the first one fails
	first := s.WantReport("configmap/c", report.Halted, nil)
	if is := first.Status; is.Total != 3 || is.Failed != 1 || is.Done != 0 || !slices.Equal(conditions(first), []string{report.Stalled}) {
		t.Errorf("halted, it says %+v", is)
	}
	versions := harness.Record(t, r.Dynamic.Resource(report.GroupVersion().WithResource(report.Resource)).Namespace(s.Namespace))
	for range 3 {
		harness.Must(t, product.Kill())
		harness.Must(t, r.ForgetLeader(t.Context()))
		harness.Must(t, product.Start(t.Context()))
		s.Eventually("waiting for a leader", func() error {
			if product.Leader() == nil {
				return errors.New("there is none")
			}
			return nil
		})
		s.Quiet()
	}
	last := s.WantReport("configmap/c", report.Halted, nil)
	if !last.Status.EditedAt.Equal(first.Status.EditedAt) || last.Status.Total != 3 || len(last.Status.History) != 0 {
		t.Errorf("in the end it says %+v", last.Status)
	}
	wantAnswers(t, s, last)
	seen := versions()
	if len(seen) == 0 {
		t.Error("no version was seen")
	}
	for _, object := range seen {
		is, err := harness.ReportIn(object)
		harness.Must(t, err)
		ready := meta.FindStatusCondition(is.Status.Conditions, report.Ready)
		if ready == nil || slices.Contains([]string{string(report.Settling), string(report.Complete), string(report.Unused)}, ready.Reason) || is.Status.Done > 0 || is.Status.Failed > 1 || is.Status.Total != 3 {
			t.Errorf("a version says %+v", is.Status)
		}
	}
}

// wantAnswers asks about a halted change what a user with the role view can ask, when its Events are gone.
func wantAnswers(t *testing.T, s *harness.Space, halted *report.ConfigRollout) {
	t.Helper()
	viewers(t, s)
	s.Kubectl("delete", "events", "--all")
	ask, failed, waits := plugin(t, s), "", ""
	for _, e := range halted.Status.Workloads {
		switch e.State {
		case report.Failed:
			failed = e.Names[0]
		case report.Waiting:
			waits = e.Names[0]
		default:
		}
	}
	for command, parts := range map[string][]string{
		"status":                        {"configmap/c in namespace " + s.Namespace + ": Halted", "0 of 3 done, 1 failed", failed, waits},
		"why " + failed:                 {"This workload has failed since", "Next: "},
		"why " + waits:                  {"This workload is waiting since", "Next: "},
		"users configmap/c":             {"deployment/a", "deployment/b", "deployment/d"},
		"wait configmap/c --timeout=1m": {"halted: ", "has failed with it"},
		"get configrollouts -o wide":    {"Halted", "has failed with it"},
	} {
		out, code := "", 0
		if arguments := strings.Fields(command + " --as somebody --as-group viewers"); arguments[0] == "get" {
			result := s.TryKubectl(arguments...)
			out, code = result.Stdout+result.Stderr, result.Code
		} else {
			out, code = ask(arguments...)
		}
		want := 0
		if strings.HasPrefix(command, "wait ") {
			want = 2
		}
		text := strings.Join(strings.Fields(out), " ")
		if code != want || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) }) {
			t.Errorf("%s: exit code %d, want %d and %q in\n%s", command, code, want, parts, out)
		}
	}
}

// While the definition is missing, edits roll as before. Once it is back, all are reported.
func TestReport_ItsDefinitionGoesAndComes(t *testing.T) {
	run.Exclusive(t)
	s, r := run.Space(t), run.Of(t)
	s.Set("configmap/c", "k", "1")
	s.Create(podless("d", "configmap/c"))
	s.Create(withPolicy(deployment("held", "configmap/c"), settings{"pause": "true"}))
	s.Settled("deployment/d", "deployment/held")
	definitions := r.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	name := report.Resource + "." + report.GroupVersion().Group
	definition, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	harness.Must(t, err)
	again := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": definition.GetKind(), "spec": definition.Object["spec"]}}
	again.SetName(name)
	again.SetLabels(definition.GetLabels())
	restore := func() {
		_, err := definitions.Create(context.Background(), again, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	harness.Must(t, definitions.Delete(t.Context(), name, metav1.DeleteOptions{}))
	t.Cleanup(restore)
	s.Eventually("waiting for the definition to be gone", func() error {
		if _, err := definitions.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %w", err)
		}
		return nil
	})
	before := s.Counts()
	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	restore()
	s.WantReport("configmap/c", report.Held, nil)
}

// A quota refuses reports in one namespace: a Warning is emitted, edits roll as before, and other namespaces have reports.
func TestReport_RefusedInOneNamespace(t *testing.T) {
	product := run.Exclusive(t)
	refused, other := run.Space(t), run.Space(t)
	refused.KubectlInput("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none}\nspec: {hard: {count/configrollouts.configstamp.dev: 0}}\n", "create", "-f", "-")
	refused.Eventually("waiting for the quota", func() error {
		if is := refused.Kubectl("get", "resourcequota", "none", "-o", "jsonpath={.status.hard}"); !strings.Contains(is.Stdout, report.Resource) {
			return fmt.Errorf("its status: %q", is.Stdout)
		}
		return nil
	})
	for _, s := range []*harness.Space{refused, other} {
		s.Set("configmap/c", "k", "1")
		s.Create(podless("d", "configmap/c"))
		before := s.Settled("deployment/d")
		s.Set("configmap/c", "k", "2")
		s.WantRolls(before, rolls{"deployment/d": 1})
	}
	other.WantReport("configmap/c", report.Complete, nil)
	if _, err := refused.ConfigRollout("configmap/c"); !apierrors.IsNotFound(err) {
		t.Errorf("in spite of the quota: %v", err)
	}
	own := run.Of(t).Existing(t, harness.OwnNamespace)
	own.WantNote("namespace/"+harness.OwnNamespace, "ReportRefused")
	if n := harness.Sum(product.Controllers, "configstamp_report_writes_total", "refused"); n < 1 {
		t.Errorf("refused writes are counted as %v", n)
	}
}
