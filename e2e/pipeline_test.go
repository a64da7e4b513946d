package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The example of a pipeline ends with the exit codes that docs/kubectl.md#waiting-in-a-pipeline has, for a user with the role edit. A user
// with the role view gets the same from wait, but for a Secret.
func TestPlugin_Pipeline(t *testing.T) {
	t.Parallel()
	s := run.Space(t)
	editors, viewers := pipelineUser(t, s, "edit"), pipelineUser(t, s, "view")
	s.Set("configmap/c", "k", "1")
	s.Set("configmap/fails", "k", "1")
	s.Set("configmap/slow", "k", "1")
	s.Set("secret/s", "k", "1")
	s.Create(podless("web", "configmap/c", "secret/s"))
	s.Create(strings.Replace(deployment("fails", "configmap/fails"), "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 2", 1))
	s.Create(deployment("slow", "configmap/slow")) // whose pods find no node
	s.Settled("deployment/web", "deployment/fails", "deployment/slow")

	deploys := func(code int, source, value string, arguments ...string) {
		t.Helper()
		kind, name, _ := strings.Cut(source, "/")
		manifest := fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s}\n", map[string]string{"configmap": "ConfigMap", "secret": "Secret"}[kind], name)
		manifest += map[string]string{"configmap": "data", "secret": "stringData"}[kind] + ": {k: \"" + value + "\"}\n"
		file := filepath.Join(t.TempDir(), "config.yaml")
		harness.Must(t, os.WriteFile(file, []byte(manifest), 0o600))
		editors(code, append([]string{"sh", "../examples/pipeline.sh", file, source, "--timeout=60s"}, arguments...)...)
	}
	waits := func(code int, source string) {
		t.Helper()
		viewers(code, "kubectl", "configstamp", "wait", source, "--timeout=60s")
	}
	deploys(0, "configmap/c", "2")
	waits(0, "configmap/c")
	deploys(0, "secret/s", "2")
	waits(5, "secret/s") // the role view may not read it
	deploys(2, "configmap/fails", "2")
	waits(2, "configmap/fails")
	s.SetPolicy("deployment/web", settings{"pause": "true"})
	nextSecond()
	deploys(3, "configmap/c", "3")
	waits(3, "configmap/c")
	deploys(4, "configmap/slow", "2", "--timeout=5s")
}

// pipelineUser returns how a user who has a role in the space runs a command, whose exit code is checked.
func pipelineUser(t *testing.T, s *harness.Space, role string) func(code int, args ...string) {
	t.Helper()
	r, group := run.Of(t), role+"ors-of-"+s.Namespace
	s.Kubectl("create", "rolebinding", role, "--clusterrole="+role, "--group="+group)
	config, err := clientcmd.LoadFromFile(r.Kubeconfig())
	harness.Must(t, err)
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = "somebody", []string{group}
	}
	for _, context := range config.Contexts {
		context.Namespace = s.Namespace
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	harness.Must(t, clientcmd.WriteToFile(*config, kubeconfig))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "kubectl-configstamp"), "../cmd/kubectl-configstamp")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, text)
	}
	s.Eventually("waiting for the rights", func() error {
		if is := s.TryKubectl("auth", "can-i", "list", "configrollouts.configstamp.dev", "--as=somebody", "--as-group="+group); is.Code != 0 {
			return errors.New(is.Stdout)
		}
		return nil
	})
	return func(code int, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), args[0], args[1:]...)
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+dir+string(os.PathListSeparator)+r.Programs()+string(os.PathListSeparator)+os.Getenv("PATH"))
		text, err := command.CombinedOutput()
		if err != nil && command.ProcessState == nil {
			t.Fatal(err)
		}
		t.Logf("%s$ %s\n%s", role, strings.Join(args, " "), text)
		if got := command.ProcessState.ExitCode(); got != code {
			t.Errorf("%s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, text)
		}
	}
}
