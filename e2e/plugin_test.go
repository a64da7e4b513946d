package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/internal/report"
)

// The kubectl plugin, against a real API server and the real webhook.

// plugin builds the plugin, and returns what runs it in a space.
func plugin(t *testing.T, s *harness.Space) func(args ...string) (out string, code int) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-configstamp")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/kubectl-configstamp")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, text)
	}
	return func(args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		args = append(args, "--configstamp-namespace", harness.OwnNamespace)
		if !slices.Contains(args, "--migrate") { // which looks at all namespaces
			args = append(args, "-n", s.Namespace)
		}
		command := exec.CommandContext(t.Context(), binary, args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+run.Of(t).Kubeconfig())
		command.Stdout, command.Stderr = &out, &out
		err := command.Run()
		if err != nil && command.ProcessState == nil {
			t.Fatal(err)
		}
		t.Logf("$ kubectl configstamp %s\n%s", strings.Join(args, " "), out.String())
		return out.String(), command.ProcessState.ExitCode()
	}
}

// What a user with the role view can ask: one command for each question, and without Events.
func TestPlugin_TheRoleViewHasAllAnswers(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	ask := plugin(t, s)
	want := func(args string, code int, parts ...string) {
		t.Helper()
		out, got := ask(append(strings.Fields(args), "--as", "somebody", "--as-group", "viewers")...)
		text := strings.Join(strings.Fields(out), " ")
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s: want %q in\n%s", args, part, out)
			}
		}
		if got != code {
			t.Errorf("%s: exit code %d, want %d:\n%s", args, got, code, out)
		}
	}
	s.Set("configmap/c", "k", "1")
	for _, name := range []string{"d", "held"} { // without pods, which nobody would run here
		s.Create(strings.Replace(deployment(name, "configmap/c"), "replicas: 1", "replicas: 0", 1))
	}
	s.SetPolicy("deployment/held", settings{"pause": "true"})
	before := s.Settled("deployment/d", "deployment/held")
	if out, code := ask("status", "--as", "somebody", "--as-group", "viewers"); code != 1 || !strings.Contains(out, "is forbidden") {
		t.Errorf("exit code %d; a user without rights gets\n%s", code, out)
	}
	viewers(t, s)
	want("status", 0, "There is no report in namespace "+s.Namespace)
	want("users configmap/c", 0, "deployment/d", "An edit restarts 0 of 2 workloads.")

	nextSecond()
	s.Set("configmap/c", "k", "2")
	want("wait configmap/c --timeout=2m", 3, "held: deployment/held is held: configstamp.dev/pause holds it")
	s.WantRolls(before, rolls{"deployment/d": 1})
	want("wait deployment/d --timeout=2m", 0, "it has the present content of its sources")
	s.Kubectl("delete", "events", "--all")
	is := s.WantReport("configmap/c", report.Held, nil)
	edited := "edited " + is.Status.EditedAt.UTC().Format(time.RFC3339)
	want("status", 0, "configmap/c in namespace "+s.Namespace+": Held", edited, "1 of 2 done, 0 failed", "deployment/held: configstamp.dev/pause holds it", "1 edit is not complete")
	want("why deployment/d", 0, "configmap/c: Held, "+edited, "This workload is done", "configmap/c was "+edited, "Next: nothing")
	want("why deployment/held", 0, "This workload is held since", "Next: wait, or ask a user who may change it")
	want("status deployment/held -o name", 0, "configrollout.configstamp.dev/configmap-c")
	want("status configmap/cc", 1, "did you mean c?")
	if out, _ := ask("why", "deployment/held"); !strings.Contains(out, "kubectl configstamp unpause deployment/held -n "+s.Namespace) {
		t.Errorf("who may patch it gets no command:\n%s", out)
	}

	s.DropPolicy("deployment/held", settings{"pause": "true"})
	want("wait configmap/c --timeout=2m", 0, "2 of 2 workloads have it")
	want("status", 0, "Nothing is under way")
	nextSecond()
	s.Set("configmap/c", "k", "3")
	if out, code := ask("wait", "configmap/c", "--timeout=2m"); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "2 of 2 workloads have it: there is nothing to do") {
		t.Errorf("exit code %d; who may patch gets\n%s", code, out)
	}
	third := s.WantReport("configmap/c", report.Complete, is)
	want("why deployment/d", 0, "configmap/c was edited "+third.Status.EditedAt.UTC().Format(time.RFC3339), "configmap/c was "+edited)
}

// viewers lets the group of that name view a space, as many users may.
func viewers(t *testing.T, s *harness.Space) {
	t.Helper()
	s.Kubectl("create", "rolebinding", "viewers", "--clusterrole=view", "--group=viewers")
	t.Cleanup(func() { s.TryKubectl("delete", "rolebinding", "viewers") })
	s.Eventually("waiting until viewers may view", func() error {
		for _, what := range []string{"configmaps", "configrollouts.configstamp.dev", "deployments.apps"} {
			if got := s.TryKubectl("auth", "can-i", "list", what, "--as=somebody", "--as-group=viewers"); got.Code != 0 {
				return fmt.Errorf("list %s: %s", what, got.Stdout)
			}
		}
		return nil
	})
}
