package krew

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKrewTakesIt has krew's own validator look at the manifest. It has krew install every
// platform, from a server of this test instead of the release's address, and so compare every
// sum. Then krew installs this machine's one as a person would, and that runs.
func TestKrewTakesIt(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	p := manifest(t)
	text := strings.ReplaceAll(string(read(t, "configstamp.yaml")), "https://github.com/configstamp/configstamp/releases/download/"+p.Spec.Version, server.URL)
	work := t.TempDir()
	local := filepath.Join(work, "configstamp.yaml") // the validator reads the name of the plugin from that of the file
	write(t, local, text, 0o644)
	// krew is a plugin itself: "kubectl krew" is all that the validator asks of kubectl.
	write(t, filepath.Join(work, "kubectl"), "#!/bin/sh\nshift\nexec "+tool(t, "krew")+" \"$@\"\n", 0o755)
	root := filepath.Join(work, "root")
	t.Setenv("PATH", work+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("KREW_ROOT", root)
	t.Setenv("KREW_NO_UPGRADE_CHECK", "1")

	printed := run(t, tool(t, "validate-krew-manifest"), "-manifest", local)
	for _, warning := range []string{"warning", "exceeds"} {
		if strings.Contains(strings.ToLower(printed), warning) {
			t.Errorf("krew's validator warns:\n%s", printed)
		}
	}
	if !strings.Contains(printed, "all 6 spec.platforms installed fine") {
		t.Errorf("krew's validator says:\n%s", printed)
	}

	printed = run(t, "kubectl", "krew", "install", "--manifest="+local)
	t.Log(printed)
	if !strings.Contains(printed, "Installed plugin: configstamp") || !strings.Contains(printed, "kubectl_complete-configstamp") {
		t.Errorf("krew says:\n%s", printed)
	}
	wantAnswers(t, filepath.Join(root, "bin", "kubectl-configstamp"), p.Spec.Version)
	complete := filepath.Join(root, "bin", "kubectl_complete-configstamp") // as the caveats say
	if err := os.Symlink("kubectl-configstamp", complete); err != nil {
		t.Fatal(err)
	}
	if got := run(t, complete, "use"); !strings.HasPrefix(got, "users") {
		t.Errorf("it completes \"use\" to %q", got)
	}
}

// tool is where a program of krew lies, once built. What go says of its downloads, to the
// standard error, is no part of that.
func tool(t *testing.T, name string) string {
	t.Helper()
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), "go", "tool", "-n", name)
	command.Stderr = &said
	path, err := command.Output()
	if err != nil {
		t.Fatalf("go tool -n %s: %v\n%s", name, err, said.String())
	}
	return strings.TrimSpace(string(path))
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
