package gitops

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// An order by hand, by the kubectl plugin, on an object that is in Git: no sync takes it back.
func TestAnOrderByHandStays(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "kubectl-configstamp")
	if text, err := exec.CommandContext(t.Context(), "go", "-C", "../..", "build", "-o", binary, "./cmd/kubectl-configstamp").CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, text)
	}
	each(t, run.Space, func(t *testing.T, s *harness.Space, by tool) {
		order := func(args ...string) {
			t.Helper()
			command := exec.CommandContext(t.Context(), binary, append(args, "deployment/d", "-n", s.Namespace, "--configstamp-namespace", harness.OwnNamespace)...)
			command.Env = append(os.Environ(), "KUBECONFIG="+run.Kubeconfig())
			if text, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, text)
			}
		}
		by.sync(t, manifest)
		before := s.Settled("deployment/d")
		order("pause", "--reason", "INC-42")
		for range 2 {
			by.sync(t, manifest)
		}
		if got := s.Get("deployment/d").GetAnnotations()["configstamp.dev/pause"]; got != "true" {
			t.Errorf("after two syncs the pause is %q", got)
		}
		s.Set("configmap/c", "k", "2")
		s.Unchanged(before)
		order("unpause")
		s.WantRolls(before, rolls{"deployment/d": 1})
		by.sync(t, manifest)
		wantNoDrift(t, by, "after the order has ended")
	})
}
