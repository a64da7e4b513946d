package pods

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/e2e/harness"
)

// The API server's own plugin enforces Pod Security "restricted" on configstamp's
// namespace; and the kernel says of each process what was asked for.
func TestPodsAreRestricted(t *testing.T) {
	t.Cleanup(func() { cluster.Uninstall(t) })
	cluster.Install(t)
	own := cluster.Client.CoreV1().Pods(harness.OwnNamespace)
	pods, err := own.List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=configstamp"})
	harness.Must(t, err)
	containers := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		for _, container := range pod.Status.ContainerStatuses {
			containers++
			t.Run(pod.Name+" "+container.Name, func(t *testing.T) { wantConfined(t, container.ContainerID) })
		}
	}
	if containers != 4 {
		t.Errorf("%d containers run, want two in each of two Pods", containers)
	}

	const confined = "runAsNonRoot: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}"
	with := func(security string) string {
		return `containers: [{name: probe, image: none, securityContext: {` + security + `}}]`
	}
	create := func(spec string, args ...string) harness.Result {
		manifest := `{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {` + spec + `}}`
		result, err := cluster.Run.Kubectl(manifest, append([]string{"--namespace=" + harness.OwnNamespace, "create", "-f", "-"}, args...)...)
		harness.Must(t, err)
		return result
	}
	for what, spec := range map[string]string{
		"privileged":            with("privileged: true"),
		"as root":               with(confined + ", runAsUser: 0"),
		"with a capability":     with(strings.Replace(confined, "drop: [ALL]", "drop: [ALL], add: [SYS_ADMIN]", 1)),
		"that can gain rights":  with(strings.Replace(confined, "allowPrivilegeEscalation: false, ", "", 1)),
		"without seccomp":       with(strings.Replace(confined, "RuntimeDefault", "Unconfined", 1)),
		"that asks for nothing": with(""),
		"with the node's /":     with(confined) + ", volumes: [{name: root, hostPath: {path: /}}]",
		"in the node's network": with(confined) + ", hostNetwork: true",
		"among its processes":   with(confined) + ", hostPID: true",
	} {
		if result := create(spec); result.Code == 0 || !strings.Contains(result.Stderr, `violates PodSecurity "restricted:`) {
			t.Errorf("a Pod %s: exit code %d, want it refused by Pod Security\n%s", what, result.Code, result.Stderr)
		}
	}
	if result := create(with(confined), "--dry-run=server"); result.Code != 0 {
		t.Errorf("a Pod that is confined is refused too, so that the others say nothing: %s", result.Stderr)
	}
	if _, err := own.Get(t.Context(), "probe", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the refused Pod: %v, want none", err)
	}
}

// wantConfined asks the kernel about the processes of a container, which are this
// machine's too.
func wantConfined(t *testing.T, containerID string) {
	t.Helper()
	_, id, _ := strings.Cut(containerID, "://")
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	harness.Must(t, err)
	found := 0
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || id == "" || !strings.Contains(string(groups), id) {
			continue // it has ended, or is somebody else's
		}
		found++
		wantConfinedProcess(t, filepath.Dir(file))
	}
	if found == 0 {
		t.Errorf("no process of container %q was found", containerID)
	}
}

func wantConfinedProcess(t *testing.T, process string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(process, "status"))
	harness.Must(t, err)
	got := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		got[key] = strings.Join(strings.Fields(value), " ")
	}
	const none = "0000000000000000"
	for key, want := range map[string]string{
		"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532",
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		"NoNewPrivs": "1", "Seccomp": "2", // a filter
	} {
		if got[key] != want {
			t.Errorf("%s of process %s is %q, want %q", key, got["Name"], got[key], want)
		}
	}
	mounts, err := os.ReadFile(filepath.Join(process, "mountinfo"))
	harness.Must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[4] == "/" {
			if !slices.Contains(strings.Split(fields[5], ","), "ro") {
				t.Errorf("the root file system of process %s is mounted %s, want it read-only", got["Name"], fields[5])
			}
			return
		}
	}
	t.Errorf("process %s has no root file system", got["Name"])
}
