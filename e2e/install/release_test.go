package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

const (
	// envRelease is a folder with a release, as "make release" makes it.
	envRelease = "CONFIGSTAMP_E2E_RELEASE"
	// older is a commit that people may run when the release comes.
	older = "6c482b8"
)

// What is released is what is installed: the image from its archive, the packaged chart, the
// manifests, the plugin. An upgrade from an older commit to it, and back, restarts nothing.
func TestRelease(t *testing.T) {
	folder := os.Getenv(envRelease)
	if folder == "" {
		t.Skipf("SKIPPED (1 check): the release: %s is not set; make release-check sets it", envRelease)
	}
	chart := released(t, folder, "configstamp-*.tgz")
	image := "configstamp:v" + strings.TrimSuffix(strings.TrimPrefix(filepath.Base(chart), "configstamp-"), ".tgz")
	_, err := cluster.Driver(t.Context(), "load-image", released(t, folder, "configstamp_*.oci.tar"))
	harness.Must(t, err)

	t.Run("AnUpgradeAndBack", func(t *testing.T) {
		s := openShop(t)
		before := checkout(t, older)
		s.still("installing the older one", func() {
			helm(t, "install", "configstamp", filepath.Join(before, "deploy", "chart"), "--create-namespace", "--wait", "--timeout=3m", "--set=image.tag="+older)
			cluster.WaitServing(t)
		})
		s.still("opting in", func() { s.Label("enabled"); s.EventuallyRecorded() })
		s.rolls("1")
		s.still("the upgrade", func() {
			helm(t, "upgrade", "configstamp", chart, "--wait", "--timeout=3m", "--reset-values")
			cluster.WaitServing(t)
			wantRuns(t, image)
		})
		s.rolls("2")
		s.still("back", func() {
			helm(t, "rollback", "configstamp", "--wait", "--timeout=3m")
			cluster.WaitServing(t)
			wantRuns(t, "configstamp:"+older)
		})
		s.rolls("3")
		s.still("uninstalling", func() { uninstall(t) })
	})
	t.Run("Chart", func(t *testing.T) {
		s := openShop(t)
		s.still("helm install", func() {
			helm(t, "install", "configstamp", chart, "--create-namespace", "--wait", "--timeout=3m")
			cluster.WaitServing(t)
			wantRuns(t, image)
		})
		t.Log(helm(t, "test", "configstamp"))
		s.Label("enabled")
		s.EventuallyRecorded()
		s.rolls("1")
		if said := plugin(t, folder, "users", "configmap/message", "--namespace="+s.Namespace); !strings.Contains(said, "web") {
			t.Errorf("the plugin says: %s", said)
		}
		uninstall(t)
	})
	t.Run("Manifests", func(t *testing.T) {
		s := openShop(t)
		manifest := filepath.Join(folder, "install-self-managed.yaml")
		cluster.Kubectl(t, "apply", "-f", manifest)
		cluster.WaitServing(t)
		wantRuns(t, image)
		s.Label("enabled")
		s.EventuallyRecorded()
		s.rolls("1")
		cluster.Kubectl(t, "delete", "-f", manifest, "--timeout=2m")
	})
}

// released is the one file of the release that matches a pattern.
func released(t *testing.T, folder, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	harness.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("%s: want one, found %q", pattern, found)
	}
	return found[0]
}

// wantRuns checks which image configstamp's Pods run.
func wantRuns(t *testing.T, image string) {
	t.Helper()
	if got := cluster.Own(t, "get", "deployment/configstamp", "-o", "jsonpath={.spec.template.spec.containers[*].image}"); got != image+" "+image {
		t.Errorf("the images are %s, want %s", got, image)
	}
}

// checkout has a commit's files in a folder, and the image of it on the node, with the commit
// as its tag.
func checkout(t *testing.T, commit string) string {
	t.Helper()
	folder := t.TempDir()
	run := func(name string, args ...string) {
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir = folder
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	root := path(t, ".")
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("SKIPPED (1 check): the upgrade: commit %s is not in this clone", commit)
	}
	archive := filepath.Join(t.TempDir(), "commit.tar")
	run("git", "-C", root, "archive", "--output="+archive, commit)
	run("tar", "--extract", "--file="+archive)
	binary := filepath.Join(t.TempDir(), "configstamp")
	run("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version="+commit, "-o", binary, "./cmd/configstamp")
	_, err := cluster.Driver(t.Context(), "image", "--binary", binary, "--image", "configstamp:"+commit, "--load")
	harness.Must(t, err)
	return folder
}

// plugin unpacks the kubectl plugin from its archive, and asks it.
func plugin(t *testing.T, folder string, args ...string) string {
	t.Helper()
	to := t.TempDir()
	harness.Must(t, exec.CommandContext(t.Context(), "tar", "--extract", "--file="+released(t, folder, "kubectl-configstamp_*_linux_amd64.tar.gz"), "--directory="+to).Run())
	command := exec.CommandContext(t.Context(), filepath.Join(to, "kubectl-configstamp"), append(args, "--kubeconfig="+cluster.Kubeconfig())...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
