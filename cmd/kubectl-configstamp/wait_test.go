package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/configstamp/configstamp/e2e/fakecluster"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/workload"
)

func minutes(n int) time.Time { return atThree().Add(time.Duration(n) * time.Minute) }

// aReport is a report in a state, of an edit ten minutes ago.
func aReport(state report.State, entries ...report.Entry) *rolloutReport {
	status := metav1.ConditionFalse
	if state.Condition() == report.Ready {
		status = metav1.ConditionTrue
	}
	edited := metav1.NewTime(minutes(-10))
	r := &report.ConfigRollout{Status: report.Status{Edit: report.Edit{EditedAt: &edited}, Workloads: entries}}
	r.Status.Conditions = []metav1.Condition{{Type: report.Ready, Status: status, Reason: string(state), Message: "do something"}}
	return &rolloutReport{ConfigRollout: r}
}

func entryIn(state report.State, reason string, until time.Time) report.Entry {
	e := report.Entry{State: state, Reason: reason, Count: 1, Names: []string{"deployment/web"}}
	if !until.IsZero() {
		e.Until = &metav1.Time{Time: until}
	}
	return e
}

// The exit codes come from the reason of Ready, and from how old the report is.
func TestJudge_OfAnEdit(t *testing.T) {
	never := time.Time{}
	for name, test := range map[string]struct {
		report *rolloutReport
		last   writeTime
		want   verdict
	}{
		"complete":                     {aReport(report.Complete), writeTime{at: minutes(-10)}, finished},
		"complete, edited since":       {aReport(report.Complete), writeTime{at: minutes(-9)}, unknown},
		"complete, edit not known":     {aReport(report.Complete), writeTime{}, finished},
		"complete, a Secret for view":  {aReport(report.Complete), writeTime{hidden: true}, unknown},
		"halted, a Secret for view":    {aReport(report.Halted), writeTime{hidden: true}, halted},
		"unused":                       {aReport(report.Unused), writeTime{}, finished},
		"only observed":                {aReport(report.Unused, entryIn(report.Held, "observe-mode", never)), writeTime{}, held},
		"rolling":                      {aReport(report.Rolling), writeTime{}, going},
		"settling":                     {aReport(report.Settling), writeTime{}, going},
		"waiting":                      {aReport(report.Waiting), writeTime{}, going},
		"halted":                       {aReport(report.Halted), writeTime{}, halted},
		"halted, edited since":         {aReport(report.Halted), writeTime{at: minutes(-9)}, unknown},
		"held for good":                {aReport(report.Held, entryIn(report.Held, "pause", never)), writeTime{}, held},
		"held for too long":            {aReport(report.Held, entryIn(report.Held, "pause", minutes(11))), writeTime{}, held},
		"held for less":                {aReport(report.Held, entryIn(report.Held, "pause", minutes(9))), writeTime{}, going},
		"one for less, one for good":   {aReport(report.Held, entryIn(report.Held, "pause", minutes(9)), entryIn(report.Held, "window", never)), writeTime{}, held},
		"a state of a later release":   {aReport("Elsewhere"), writeTime{}, going},
		"no report":                    {nil, writeTime{}, unknown},
		"a report that is not written": {&rolloutReport{ConfigRollout: &report.ConfigRollout{}}, writeTime{}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			j := &judge{patience: usualPatience(), until: minutes(10)}
			got := j.ofEdit(test.report, "configmap/c", test.last)
			if got.verdict != test.want {
				t.Errorf("%+v, want %d", got, test.want)
			}
			if ends := got.lasts > 0; ends != (got.verdict >= unknown) {
				t.Errorf("it ends the wait after %s", got.lasts)
			}
		})
	}
}

func TestJudge_OfAWorkload(t *testing.T) {
	never := time.Time{}
	for name, test := range map[string]struct {
		report *rolloutReport
		want   verdict
		vague  bool
	}{
		"done while others fail": {aReport(report.Halted, entryIn(report.Done, "", never)), finished, false},
		"failed":                 {aReport(report.Rolling, entryIn(report.Failed, "", never)), halted, false},
		"halted":                 {aReport(report.Halted, entryIn(report.Waiting, "halted", never)), halted, false},
		"waits for its turn":     {aReport(report.Rolling, entryIn(report.Waiting, "turn", never)), going, false},
		"only observed":          {aReport(report.Complete, entryIn(report.Held, "observe-mode", never)), held, false},
		"not concerned":          {aReport(report.Halted), finished, false},
		"one of many":            {aReport(report.Halted, report.Entry{State: report.Failed, Count: 9, Names: []string{"deployment/a"}}), halted, true},
		"one of two kinds": {aReport(report.Halted, report.Entry{State: report.Failed, Count: 9, Names: []string{"deployment/a"}},
			report.Entry{State: report.Rolling, Count: 9, Names: []string{"deployment/b"}}), unknown, true},
		"no report": {nil, unknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := &judge{patience: usualPatience(), until: minutes(10)}
			if got := j.ofWorkload(test.report, "configmap/c", "deployment/web", writeTime{}); got.verdict != test.want || got.vague != test.vague {
				t.Errorf("%+v, want %d, vague: %t", got, test.want, test.vague)
			}
		})
	}
}

func TestJudge_OfAnAnswer(t *testing.T) {
	s := &subject{target: aTarget()}
	for code, want := range map[reason.Outcome]verdict{
		reason.OutcomeInStep: finished, reason.OutcomeWouldRoll: going, reason.OutcomeWouldRecord: going, reason.OutcomeDeferred: going, reason.OutcomeKeyLost: going,
		reason.OutcomeObserved: held, reason.OutcomeHeld: held, reason.OutcomeMissing: held, reason.OutcomeUnreadable: held, reason.OutcomeOversize: held,
		reason.NoOutcome: unknown,
	} {
		j := &judge{patience: usualPatience()}
		if got := j.ofAnswer(s, &outcome{Code: code}); got.verdict != want {
			t.Errorf("%s: %+v, want %d", code, got, want)
		}
	}
	for status, want := range map[workload.Status]verdict{
		{Phase: workload.RolledOut}: finished, {Phase: workload.Rolling}: going, {Phase: workload.Suspended}: going, {Phase: workload.Failed}: halted,
		{}: finished, {Wanted: 2, Updated: 1, Waits: "its update strategy is OnDelete"}: held,
	} {
		s.status = status
		if got := (&judge{}).ofStatus(s); got.verdict != want {
			t.Errorf("%+v: %+v, want %d", status, got, want)
		}
	}
}

// aTarget is deployment/web.
func aTarget() *target {
	return &target{Info: &resource.Info{Namespace: "shop", Name: "web", Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}}}
}

// Each way to end has its exit code, for the roles edit and view.
func TestWait_ExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		hinder func(*testing.T, *fakecluster.Server)
		args   string
		code   int
		view   int // what a user with the role view gets
		says   string
	}{
		"complete":                   {nil, "secret/db", 0, 5, "2 of 2 workloads have it"},
		"a workload":                 {nil, "deployment/in-step", 0, 5, "in-step"},
		"a ConfigMap":                {completed, "configmap/payment-api-config", 0, 0, "4 of 4 workloads have it"},
		"halted":                     {nil, "configmap/payment-api-config", 2, 2, "Put the old content back, or fix it"},
		"a halted workload":          {nil, "sts/halted", 2, 2, "Put the old content back, or fix it"},
		"a failed workload":          {nil, "deployment/failed", 2, 2, "CrashLoopBackOff"},
		"held for too long":          {nil, "deployment/paused --timeout=1h", 3, 3, "2026-11-22T06:00:00Z"},
		"held for less":              {nil, "deployment/paused --timeout=4h", 4, 4, "timed out after 4h"},
		"a second edit at once":      {secondEdit, "secret/db --timeout=1m", 4, 5, "is out of date, and yet to be rolled"},
		"would roll for another one": {otherEdit, "secret/db", 0, 5, "2 of 2 workloads have it"},
		"edited since":               {editedSince, "configmap/payment-api-config", 4, 5, "timed out after"},
		"not rolled out":             {status("updatedReplicas", 1), "deployment/in-step --timeout=1m", 4, 5, "1 of 2 pods are new"},
		"the webhook is stopped":     {func(_ *testing.T, s *fakecluster.Server) { s.Dry = nil }, "secret/db", 5, 5, "the webhook gave no answer"},
		"dry runs are refused":       {noDryRuns, "secret/db", 0, 5, "2 of 2 workloads have it"},
		"no report, in step":         {withoutReport, "secret/db", 0, 5, "in step and rolled out"},
		"nobody uses it":             {unusedSource, "secret/unused", 0, 0, "no workload uses it"},
		"leaves it alone":            {answers("opted-out"), "deployment/in-step", 5, 5, "configstamp serves none"},
		"no such workload":           {nil, "deployment/no-such", 1, 1, "not found"},
		"a timeout that is none":     {nil, "deployment/in-step --timeout=-1s", 1, 1, "--timeout"},
	} {
		for _, role := range []string{"edit", "view"} {
			t.Run(name+", "+role, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server, want := piped(t), test.code
					if test.hinder != nil {
						test.hinder(t, server)
					}
					if role == "view" {
						want = test.view
						server.Forbid = func(verb, resource, _ string) bool { return verb == "patch" || resource == "secrets" }
					}
					begun := time.Now()
					out, errOut, code := run(t, server, append([]string{"wait"}, strings.Fields(test.args)...)...)
					took := time.Since(begun)
					if code != exitTimedOut && took > 2*time.Minute {
						t.Errorf("it ends after %s, though nothing is left to wait for", took)
					}
					if (code == exitHalted || code == exitHeld) && took < usualPatience().settled {
						t.Errorf("it believes bad news after %s", took)
					}
					if code != want || role == "edit" && !strings.Contains(strings.Join(strings.Fields(out+errOut), " "), test.says) {
						t.Errorf("exit code %d, want %d, and %q in:\n%s%s", code, want, test.says, out, errOut)
					}
				})
			})
		}
	}
}

func answers(code string) func(*testing.T, *fakecluster.Server) {
	return func(_ *testing.T, s *fakecluster.Server) {
		s.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
			return []string{"configstamp: " + code + ": as the test says"}, nil
		}
	}
}

func status(field string, value int64) func(*testing.T, *fakecluster.Server) {
	return func(t *testing.T, s *fakecluster.Server) {
		object := s.Get(t, "/apis/apps/v1/namespaces/shop/deployments/in-step")
		if err := unstructured.SetNestedField(object.Object, value, "status", field); err != nil {
			t.Fatal(err)
		}
		s.Put(object)
	}
}

// secondEdit has the webhook know of an edit within the same second, of which the leader does not know.
func secondEdit(_ *testing.T, s *fakecluster.Server) { wouldStamp(s, "secret.configstamp.dev/db") }

// otherEdit has the workloads be out of date, but for another source.
func otherEdit(_ *testing.T, s *fakecluster.Server) {
	wouldStamp(s, "configmap.configstamp.dev/another")
}

func wouldStamp(s *fakecluster.Server, annotation string) {
	s.Dry = func(_ string, object *unstructured.Unstructured) ([]string, error) {
		return []string{wouldRoll}, unstructured.SetNestedField(object.Object, newStamp, "spec", "template", "metadata", "annotations", annotation)
	}
}

// completed has the edit of the ConfigMap be complete.
func completed(t *testing.T, s *fakecluster.Server) {
	answers("in-step")(t, s)
	r := s.Get(t, reportOnConfig)
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "Complete", "message": "4 of 4 workloads have it: there is nothing to do"}
	if err := unstructured.SetNestedSlice(r.Object, []any{ready}, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	s.Put(r)
}

func editedSince(t *testing.T, s *fakecluster.Server) {
	source := s.Get(t, "/api/v1/namespaces/shop/configmaps/payment-api-config")
	fields := source.GetManagedFields()
	fields[0].Time = &metav1.Time{Time: minutes(-1)}
	source.SetManagedFields(fields)
	s.Put(source)
}

func noDryRuns(_ *testing.T, s *fakecluster.Server) {
	s.Dry = func(string, *unstructured.Unstructured) ([]string, error) {
		return nil, errors.New(`admission webhook "policy.example.com" does not support dry run`)
	}
}

func withoutReport(t *testing.T, s *fakecluster.Server) {
	answers("in-step")(t, s)
	failed := s.Get(t, "/apis/apps/v1/namespaces/shop/deployments/failed")
	for field, value := range map[string]int64{"updatedReplicas": 3, "replicas": 3} {
		if err := unstructured.SetNestedField(failed.Object, value, "status", field); err != nil {
			t.Fatal(err)
		}
	}
	s.Put(failed)
	s.Delete(t, "/apis/configstamp.dev/v1alpha1/namespaces/shop/configrollouts/secret-db")
}

func unusedSource(t *testing.T, s *fakecluster.Server) {
	s.Apply(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: unused, namespace: shop}")
}

func TestWait_Golden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := piped(t)
		golden(t, "wait-done", server, "wait", "secret/db")
		golden(t, "wait-halted", server, "wait", "configmap/payment-api-config", "-o", "name")
		golden(t, "wait-nothing", server, "wait", "configmap/no-such")
		server.Delete(t, "/apis/configstamp.dev/v1alpha1/namespaces/other/configrollouts/configmap-flags")
		server.Delete(t, "/apis/configstamp.dev/v1alpha1/namespaces/shop/configrollouts/secret-db")
		server.Delete(t, reportOnConfig)
		server.Forbid = func(verb, _, _ string) bool { return verb == "patch" }
		golden(t, "wait-no-reports", server, "wait", "configmap/payment-api-config")
	})
}
