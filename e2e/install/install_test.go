package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// helm runs helm, which must succeed, and returns what it printed.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Helm(t.Context(), append(args, "--namespace="+harness.OwnNamespace)...)
	harness.Must(t, err)
	return out
}

// install installs the chart with values.
func install(t *testing.T, values ...string) string {
	t.Helper()
	args := []string{"install", "configstamp", "deploy/chart", "--create-namespace", "--wait", "--timeout=3m"}
	return helm(t, append(args, values...)...)
}

// uninstall uninstalls the release, and checks what is left.
func uninstall(t *testing.T) {
	t.Helper()
	helm(t, "uninstall", "configstamp", "--wait", "--timeout=3m")
	wantNothingLeft(t)
	cluster.Kubectl(t, "delete", "namespace", harness.OwnNamespace, "--ignore-not-found")
}

func TestHelm(t *testing.T) {
	s := openShop(t)
	s.still("helm install", func() { t.Log(install(t)) })
	cluster.WaitServing(t)
	s.still("opting in", func() { s.Label("enabled"); s.EventuallyRecorded() })
	s.told("1")

	key := cluster.Own(t, "get", "secret", "configstamp-key", "-o", "jsonpath={.metadata.uid}{.data}")
	s.still("helm upgrade", func() {
		helm(t, "upgrade", "configstamp", "deploy/chart", "--wait", "--timeout=3m", "--set=rollouts.settle=1s", "--set=dialects={reloader}", "--set=replicas=3")
		cluster.WaitServing(t)
	})
	s.rolls("2")
	s.still("helm rollback", func() {
		helm(t, "rollback", "configstamp", "--wait", "--timeout=3m")
		cluster.WaitServing(t)
	})
	s.rolls("3")
	if cluster.Own(t, "get", "secret", "configstamp-key", "-o", "jsonpath={.metadata.uid}{.data}") != key {
		t.Error("the key of the digests is not the same after an upgrade and a rollback")
	}

	s.still("helm uninstall", func() { uninstall(t) })
	before := s.Counts()
	s.Kubectl("label", "deployment/web", "some=label")
	s.Apply(strings.Replace(app, "replicas: 2", "replicas: 3", 1))
	if s.Stamp("deployment/web", "configmap/message") == "" {
		t.Error("the annotations are gone: they were to stay, inert")
	}
	if now := s.Counts(); now["deployment/web"].Rolls != before["deployment/web"].Rolls {
		t.Error("the app rolled, with configstamp gone")
	}
}

func TestManifests(t *testing.T) {
	for name, file := range map[string]string{"WithCertManager": "deploy/install.yaml", "SelfManaged": "deploy/install-self-managed.yaml"} {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			s.still("installing", func() { cluster.Kubectl(t, "apply", "-f", path(t, file)); cluster.WaitServing(t) })
			s.still("opting in", func() { s.Label("enabled"); s.EventuallyRecorded() })
			s.told("1")
			s.still("applying the same again", func() {
				state := func() string {
					return cluster.Own(t, "get", "deployment/configstamp", "secret/configstamp-key", "-o", "jsonpath={.items[*].metadata.generation}{.items[*].data}")
				}
				before := state()
				cluster.Kubectl(t, "apply", "-f", path(t, file))
				if state() != before {
					t.Error("it rolled configstamp, or changed its key")
				}
			})
			s.rolls("2")
			if name == "SelfManaged" {
				switchDialects(t, path(t, file))
			}
			s.still("deleting", func() { cluster.Kubectl(t, "delete", "-f", path(t, file), "--timeout=2m"); wantNothingLeft(t) })
		})
	}
}

// switchDialects changes the one value of the manifest that switches dialects on, and changes it back.
func switchDialects(t *testing.T, file string) {
	t.Helper()
	off, err := os.ReadFile(file)
	harness.Must(t, err)
	edited := filepath.Join(t.TempDir(), "install.yaml")
	harness.Must(t, os.WriteFile(edited, []byte(strings.Replace(string(off), `  dialects: ""`, `  dialects: "reloader,wave"`, 1)), 0o600))
	other := openShop(t)
	other.Kubectl("annotate", "deployment/web", "reloader.stakater.com/auto=true")
	apply := func(file string) {
		cluster.Kubectl(t, "apply", "-f", file)
		cluster.Own(t, "rollout", "restart", "deployment/configstamp")
		cluster.WaitServing(t)
	}
	other.still("an edit without dialects", func() { other.Set("configmap/message", "SETTING", "1") })
	other.still("switching dialects on", func() { apply(edited); other.EventuallyRecorded() })
	other.rolls("2")
	other.still("switching dialects off", func() { apply(file) })
	other.still("an edit without dialects again", func() { other.Set("configmap/message", "SETTING", "3") })
}

// Another name than usual, in a namespace of another name, self-managed.
func TestHelm_ByAnotherName(t *testing.T) {
	s := openShop(t)
	out, err := cluster.Helm(t.Context(), "install", "config", "deploy/chart", "--namespace=platform", "--create-namespace", "--wait", "--timeout=3m",
		"--set=certificates.mode=self-managed", "--set=nameOverride=stamper")
	harness.Must(t, err)
	t.Log(out)
	s.Label("enabled")
	before := s.Counts()
	s.EventuallyRecorded()
	s.edits("1")
	s.WantRolls(before, harness.Rolls{"deployment/web": 1})
	_, err = cluster.Helm(t.Context(), "uninstall", "config", "--namespace=platform", "--wait", "--timeout=3m")
	harness.Must(t, err)
	wantNothingLeft(t)
	cluster.Kubectl(t, "delete", "namespace", "platform")
}

func TestHelm_Namespaced(t *testing.T) {
	mine, other := openShop(t), openShop(t)
	mine.still("installing", func() {
		t.Log(install(t, "--set=namespaces={"+mine.Namespace+"}"))
		mine.EventuallyRecorded()
	})
	mine.told("1")
	other.still("an edit in a namespace that is not listed", func() {
		if edit := other.Kubectl("patch", "configmap/message", "--patch", `{"data":{"SETTING":"1"}}`); len(edit.Warnings()) > 0 {
			t.Errorf("in a namespace that is not listed: %s", edit.Stderr)
		}
	})

	token := strings.TrimSpace(cluster.Own(t, "create", "token", "configstamp"))
	for _, verb := range [][]string{
		{"get", "secret", "some", "--namespace=" + other.Namespace},
		{"get", "secrets", "--namespace=" + other.Namespace},
		{"get", "secrets", "--all-namespaces"},
		{"get", "configmaps", "--all-namespaces"},
		{"get", "secrets", "--namespace=kube-system"},
		{"get", "namespaces"},
		{"get", "deployments", "--all-namespaces"},
	} {
		result := as(t, token, verb...)
		if result.Code == 0 || !strings.Contains(result.Stderr, "Forbidden") {
			t.Errorf("kubectl %s, by our own service account: exit code %d, %s%s", strings.Join(verb, " "), result.Code, result.Stdout, result.Stderr)
		}
	}
	if result := as(t, token, "get", "secrets", "--namespace="+mine.Namespace); result.Code != 0 {
		t.Errorf("in the namespace that is listed: %s", result.Stderr)
	}
	mine.still("uninstalling", func() { uninstall(t) })
}

// as runs kubectl with a token alone.
func as(t *testing.T, token string, args ...string) harness.Result {
	t.Helper()
	config := cluster.Kubectl(t, "config", "view", "--raw", "--minify", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
	result, err := cluster.Run.Kubectl("", append([]string{
		"--kubeconfig=" + stranger(t, cluster.Config.Host, config, token)}, args...)...)
	harness.Must(t, err)
	return result
}
