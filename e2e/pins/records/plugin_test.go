package records

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// plugin builds the kubectl plugin, and returns what runs it in a space; it must succeed.
func plugin(t *testing.T, s *harness.Space) func(args ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kubectl-configstamp")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../../cmd/kubectl-configstamp")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, text)
	}
	return func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		command := exec.CommandContext(t.Context(), binary, append(args, "-n", s.Namespace, "--configstamp-namespace", harness.OwnNamespace)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+run.Kubeconfig())
		command.Stdout, command.Stderr = &out, &out
		err := command.Run()
		t.Logf("$ kubectl configstamp %s\n%s", strings.Join(args, " "), out.String())
		if err != nil {
			t.Fatalf("kubectl configstamp %s: %v", strings.Join(args, " "), err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
}

// The plugin shows what there was, brings it back for a workload of each kind, or for the
// source, and takes what was declined.
func TestPlugin(t *testing.T) {
	t.Parallel()
	s := space(t)
	ask := plugin(t, s)
	want := func(printed string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(printed, part) {
				t.Errorf("want %q", part)
			}
		}
	}
	all := rolls{web: 1, "statefulset/db": 1, "daemonset/agent": 1}
	s.Set(source, "MESSAGE", "hello world")
	s.Create(manifest("Deployment", "web-app", "") + manifest("StatefulSet", "db", "") + manifest("DaemonSet", "agent", ""))
	before := s.Settled(web, "statefulset/db", "daemonset/agent")
	was := wantPin(t, s, web)
	s.Edit(source, "MESSAGE", "a mistake")
	s.WantRolls(before, all)
	is := wantPin(t, s, web)

	want(ask("snapshots", source), was, is, web+" revision 1", "statefulset/db revision 1", "daemonset/agent revision 1")
	before = s.Counts()
	for name := range all {
		want(ask("undo", name), "undone", "configmap/web-message is back at its earlier content of 20")
	}
	s.WantRollsBack(before, all)
	for name := range all {
		if got, _ := pinOf(s, name); got != was {
			t.Errorf("%s is pinned to %s, want %s", name, got, was)
		}
	}
	want(ask("why", web), "declined its present content")
	before = s.Counts()
	want(ask("accept", web), "accepted")
	s.WantRollsBack(before, rolls{web: 1})
	if got, _ := pinOf(s, web); got != is {
		t.Errorf("web-app is pinned to %s, want %s", got, is)
	}
	before = s.Counts()
	want(ask("restore", source, "--to", was), "restored")
	s.WantRollsBack(before, rolls{web: 1}) // the others have it
	if got, _ := pinOf(s, web); got != was {
		t.Errorf("web-app is pinned to %s, want %s", got, was)
	}

	// The mistake is deleted for good, and nothing misses it: only a revision named it.
	s.Kubectl("scale", web, "--replicas=0")
	s.Eventually("waiting until no pod reads the mistake", func() error {
		pods, err := run.Client.CoreV1().Pods(s.Namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return strings.Contains(pod.Annotations["configstamp.dev/pinned"], is) }) {
			return errors.New("one does")
		}
		return err
	})
	before = s.Counts()
	s.Kubectl("delete", "configmap", is)
	if left := snapshots(t, s); len(left) != 1 || left[was].Name != was {
		t.Errorf("after the deletion there are %v, want %s alone", left, was)
	}
	s.Unchanged(before)
	for name := range all {
		s.WantNoNote(name, "SnapshotLost")
	}
}
