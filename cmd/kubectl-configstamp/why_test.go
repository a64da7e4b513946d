package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/workload"
)

// With the role view, and without the webhook and Events.
func TestWhy(t *testing.T) {
	server := incident(t)
	server.Forbid = func(verb, resource, _ string) bool {
		return verb == "patch" || resource == "secrets" || resource == "events"
	}
	golden(t, "why-failed", server, "why", "deployment/failed")
	golden(t, "why-halted", server, "why", "sts/halted")
	golden(t, "why-paused", server, "why", "deployment/paused")
	golden(t, "why-in-step", server, "why", "deploy", "in-step")
	golden(t, "why-not-served", server, "why", "deployment/mislabelled")
	golden(t, "why-pod", server, "why", "pod/failed-2-fghij")
	golden(t, "why-name", server, "why", "deployment/failed", "-o", "name")
	golden(t, "why-nothing", server, "why", "deployment/in-stepp")
	golden(t, "why-no-kind", server, "why", "gizmo/failed")
}

// Only commands that the user may carry out are proposed.
func TestWhy_AdviceIsForWhatTheUserMayDo(t *testing.T) {
	golden(t, "why-paused-edit", incident(t), "why", "deployment/paused")
	golden(t, "why-not-served-edit", incident(t), "why", "deployment/mislabelled")
}

// No order rolls a workload while something that it requires is missing, or a setting cannot be read. So no order is
// proposed, but what has to be put right.
func TestWhy_NoOrderHelps(t *testing.T) {
	held := "reason: pause, message: configstamp.dev/pause holds it"
	for why, message := range map[string]string{
		"missing-source":     "secret/db does not exist",
		"missing-key":        "secret/db key password does not exist",
		"unreadable-setting": "configstamp.dev/window cannot be read",
	} {
		server := incident(t)
		server.Apply(t, strings.Replace(firstReport(t), held, "reason: "+why+", message: "+message, 1))
		out, _, _ := run(t, server, "why", "deployment/paused")
		if !strings.Contains(out, "\nNext: put right what holds it: "+message+"\n") {
			t.Errorf("%s: it says\n%s", why, out)
		}
	}
}

// A workload that has failed and has gone back to its former content waits for a fix, and not for its order to take the
// content that has failed.
func TestWhy_AfterAReturn(t *testing.T) {
	server := incident(t)
	server.Apply(t, strings.Replace(firstReport(t), "reason: pause, message: configstamp.dev/pause holds it", "reason: declined-kept, message: its own return declined its present content", 1))
	out, _, _ := run(t, server, "why", "deployment/paused")
	if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, "Next: Deployment failed has failed with it: container api: CrashLoopBackOff. Put the old content back, or fix it") {
		t.Errorf("it says\n%s", out)
	}
}

// Content that is put back has its old revision again. That need not be an undo.
func TestWhy_ARevisionComesBack(t *testing.T) {
	made := func(n int64, minute int) *revision {
		return &revision{Revision: &workload.Revision{Number: n, Created: minutes(minute)}}
	}
	var out strings.Builder
	(&whyOf{revisions: []*revision{made(3, -60), made(2, -30)}}).printRevisions(&out)
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "an older revision came back: by old content that was put back, an undo, or its own return") {
		t.Errorf("it says\n%s", out.String())
	}
}

// If the API server refuses its pods, no other content helps, whatever the report advises.
func TestWhy_RefusedPods(t *testing.T) {
	server := incident(t)
	set("/apis/apps/v1/namespaces/shop/deployments/failed", []any{map[string]any{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}}, "status", "conditions")(t, server)
	out, _, _ := run(t, server, "why", "deployment/failed")
	if !strings.Contains(out, "Next: The content is at fault only if it asks for more") {
		t.Errorf("it says\n%s", out)
	}
}

// A revision that pins content says what an undo to it brings back.
func TestWhy_Pinned(t *testing.T) {
	server := pinned(t)
	text, err := os.ReadFile("testdata/reports.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server.Apply(t, string(text))
	golden(t, "why-pinned", server, "why", "pod/waiting-1-x2x9l")
}

// A report names twenty workloads of each entry. Nothing is said of another one but what is true in any case.
func TestEntriesFor(t *testing.T) {
	held := report.Entry{State: report.Held, Count: 480, Names: []string{"deployment/a", "deployment/b"}}
	done := report.Entry{State: report.Done, Count: 1, Names: []string{"deployment/c"}}
	more := report.Entry{State: report.Done, Count: 30, Names: []string{"deployment/c"}}
	for name, test := range map[string]struct {
		workload string
		entries  []report.Entry
		want     []report.State
		named    bool
	}{
		"named":                       {"deployment/b", []report.Entry{held, done}, []report.State{report.Held}, true},
		"named in the second":         {"deployment/c", []report.Entry{held, more}, []report.State{report.Done}, true},
		"it can be in one alone":      {"deployment/x", []report.Entry{held, done}, []report.State{report.Held}, false},
		"it can be in several":        {"deployment/x", []report.Entry{held, more}, []report.State{report.Held, report.Done}, false},
		"it is in none":               {"deployment/x", []report.Entry{done}, nil, false},
		"there is none":               {"deployment/x", nil, nil, false},
		"part of a name is no name":   {"deployment/", []report.Entry{done}, nil, false},
		"of another kind, but a name": {"statefulset/c", []report.Entry{done}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			entries, named := entriesFor(&report.Status{Workloads: test.entries}, test.workload)
			var got []report.State
			for _, e := range entries {
				got = append(got, e.State)
			}
			if !slices.Equal(got, test.want) || named != test.named {
				t.Errorf("%v, %t; want %v, %t", got, named, test.want, test.named)
			}
		})
	}
}

func TestWhy_OneOfMany(t *testing.T) {
	server := incident(t)
	server.Apply(t, strings.NewReplacer("count: 2, names: [deployment/other, statefulset/halted]", "count: 480, names: [deployment/other]").Replace(firstReport(t)))
	out, _, _ := run(t, server, "why", "sts/halted")
	if !strings.Contains(out, "This workload is one of 480 that are waiting since 2026-11-22T02:42:00Z") {
		t.Errorf("it says\n%s", out)
	}
	server.Apply(t, strings.NewReplacer("count: 2, names: [deployment/other, statefulset/halted]", "count: 480, names: [deployment/other]",
		"count: 1, names: [deployment/paused]", "count: 30, names: [deployment/first]").Replace(firstReport(t)))
	out, _, _ = run(t, server, "why", "deployment/paused")
	if text := strings.Join(strings.Fields(out), " "); strings.Contains(out, "one of") || !strings.Contains(text, "is not named in the report") || !strings.Contains(text, "its settings hold it: configstamp.dev/pause until 2026-11-22T06:00:00Z") {
		t.Errorf("it says\n%s", out)
	}
}

func firstReport(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/reports.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---")
	return first
}

// A revision is because of the last edit before it, but of none before the revision that it followed.
func TestEditBetween(t *testing.T) {
	edit := func(n int) report.Edit { return report.Edit{EditedAt: &metav1.Time{Time: minutes(n)}} }
	made := func(n int) *revision { return &revision{Revision: &workload.Revision{Created: minutes(n)}} }
	s := &report.Status{Edit: edit(-10), History: []report.Past{{Edit: edit(-20)}, {Edit: edit(-30)}}}
	for name, test := range map[string]struct{ was, is, want int }{
		"of now": {-15, -9, -10}, "of history": {-25, -15, -20}, "the last of two": {-35, -15, -20}, "at once": {-25, -20, -20},
		"none since": {-9, -5, 0}, "none before": {-60, -40, 0},
	} {
		got := editBetween(s, made(test.was), made(test.is))
		if got == nil != (test.want == 0) || got != nil && !got.EditedAt.Time.Equal(minutes(test.want)) {
			t.Errorf("%s: %+v, want that of %d", name, got, test.want)
		}
	}
}
