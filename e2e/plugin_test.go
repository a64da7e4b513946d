package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
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
		command := exec.CommandContext(t.Context(), binary, append(args, "-n", s.Namespace, "--configstamp-namespace", harness.OwnNamespace)...)
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

func TestPlugin_SaysWhatIsThere(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	ask := plugin(t, s)
	want := func(args string, parts ...string) {
		t.Helper()
		out, code := ask(strings.Fields(args)...)
		for _, part := range parts {
			if !strings.Contains(out, part) || code != 0 {
				t.Errorf("%s: want %q, exit code 0; got %d and\n%s", args, part, code, out)
			}
		}
	}
	s.Set("configmap/c", "k", "1")
	for _, name := range []string{"d", "held"} { // without pods, which nobody would run here
		s.Create(strings.Replace(deployment(name, "configmap/c"), "replicas: 1", "replicas: 0", 1))
	}
	s.SetPolicy("deployment/held", settings{"pause": "true"})
	before := s.Settled("deployment/d", "deployment/held")
	want("users configmap/c", "deployment/d", "2 of 2 restart")
	want("status", "2 workloads: 2 done.")

	s.Set("configmap/c", "k", "2")
	s.WantRolls(before, rolls{"deployment/d": 1})
	want("why deployment/d", "configmap/c changed", "in step", "ConfigChanged")
	want("status", "configmap/c in namespace", "1 of 2 done, 1 held", "configstamp.dev/pause", "kubectl configstamp unpause deployment/held")

	// Who may only look is told the same, but for what the webhook alone knows.
	out, code := ask("status", "--as", "somebody", "--as-group", "viewers")
	if code != 1 || !strings.Contains(out, "you have no right to list any kind of workload") {
		t.Errorf("exit code %d; of a user without rights it says\n%s", code, out)
	}
	viewers(t, s)
	want("why deployment/d --as somebody --as-group viewers", "configmap/c changed", "unknown: you have no right to patch")
}

// viewers lets the group of that name view a space, as many users may.
func viewers(t *testing.T, s *harness.Space) {
	t.Helper()
	s.Kubectl("create", "rolebinding", "viewers", "--clusterrole=view", "--group=viewers")
	t.Cleanup(func() { s.TryKubectl("delete", "rolebinding", "viewers") })
	s.Eventually("waiting until viewers may view", func() error {
		for _, what := range []string{"configmaps", "events", "deployments.apps"} {
			if got := s.TryKubectl("auth", "can-i", "list", what, "--as=somebody", "--as-group=viewers"); got.Code != 0 {
				return fmt.Errorf("list %s: %s", what, got.Stdout)
			}
		}
		return nil
	})
}
