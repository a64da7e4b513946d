// Package snippets runs what the pages for new users have people type, as they would: each
// page from top to bottom, in a copy of the checkout, on a real cluster of its own with a
// real node (needs root). It knows nothing of what the pages say; package page says how
// snippets are found, and how a page marks one that cannot run here. A snippet is a shell's
// (sh), an object or a file of values (yaml), or only to be read (text, mermaid).
package snippets

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/e2e/harness"
	"github.com/configstamp/configstamp/e2e/pods"
	"github.com/configstamp/configstamp/e2e/snippets/page"
)

// Each has a cluster with the image configstamp:dev, cert-manager, and nothing else,
// unless a page says that configstamp is installed already.
var pages = []struct {
	name  string
	given string // what was done before
}{
	{name: "docs/quick-start.md"},
	{name: "README.md"},
	{name: "examples/README.md", given: "kubectl apply -f deploy/install-self-managed.yaml\nkubectl -n configstamp rollout status deployment/configstamp --timeout=2m"},
}

const (
	patience = 2 * time.Minute // until what a page says is printed
	bound    = 10 * time.Minute
)

func TestMain(m *testing.M) {
	if os.Getenv(harness.EnvEnabled) == "" {
		fmt.Printf("skipped: these tests start a Kubernetes; %s=1 runs them (see e2e/README.md)\n", harness.EnvEnabled)
		return
	}
	if os.Geteuid() != 0 {
		fmt.Println("SKIPPED (1 check): the snippets of the pages: they run real containers, which needs root")
		return
	}
	if _, err := os.Stat("/bin/busybox"); err != nil {
		fmt.Println("SKIPPED (1 check): the snippets of the pages: they need Debian's busybox-static, of which the examples' image is made")
		return
	}
	os.Exit(m.Run())
}

func TestSnippets(t *testing.T) {
	for _, one := range pages {
		t.Run(filepath.Base(filepath.Dir(one.name))+"/"+filepath.Base(one.name), func(t *testing.T) {
			r := newReader(t, one.name)
			if one.given != "" {
				r.must(page.Snippet{Text: one.given})
			}
			r.read()
		})
	}
}

// reader is somebody who reads a page and types what it says.
type reader struct {
	t           *testing.T
	page        string
	dir         string // the copy of the checkout
	state       string // where a shell leaves its variables and directory for the next one
	environment []string
	printed     string // by the last snippet
	last        page.Snippet
	ran         int
	notRun      []string
}

func newReader(t *testing.T, name string) *reader {
	t.Helper()
	run, err := harness.Begin(t.Context(), harness.Wanted{Node: harness.Kubelet, Pods: true})
	harness.Must(t, err)
	t.Cleanup(func() {
		if err := run.End(); err != nil {
			t.Error(err)
		}
	})
	harness.Must(t, (&pods.Cluster{Run: run}).LoadImage(t.Context(), pods.Image, "e2e"))
	for _, args := range [][]string{{"cert-manager"}, busybox} {
		_, err = run.Driver(t.Context(), args...)
		harness.Must(t, err)
	}
	root, err := harness.Root()
	harness.Must(t, err)
	r := &reader{t: t, page: name, dir: t.TempDir(), state: filepath.Join(t.TempDir(), "state")}
	programs := t.TempDir()
	r.shell(t.Context(), nil, fmt.Sprintf(`cd %q && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory %q
ln -s "$(make --silent --no-print-directory helm | tail -1)" %q`, root, r.dir, programs+"/helm"))
	r.environment = append(os.Environ(), "KUBECONFIG="+run.Kubeconfig(), "KUBECACHEDIR="+run.Dir, "PATH="+programs+":"+run.Programs()+":"+os.Getenv("PATH"),
		"HELM_CACHE_HOME="+run.Dir, "HELM_CONFIG_HOME="+run.Dir, "HELM_DATA_HOME="+run.Dir, "GOFLAGS=-buildvcs=false")
	return r
}

// busybox is the image of that name, as far as the examples need it, made of Debian's program.
var busybox = []string{"image", "--image", "busybox:1.37", "--load", "--user", "0", "--binary", "/bin/busybox", "--file", "/bin/busybox:/bin/sh", "--file", "/bin/busybox:/bin/sleep"}

// read does what the page says, and tells what of it was not done.
func (r *reader) read() {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, r.page))
	harness.Must(r.t, err)
	snippets, err := page.Read(string(text))
	harness.Must(r.t, err)
	for _, snippet := range snippets {
		began := time.Now()
		r.take(snippet)
		r.t.Logf("%s:%d: %s, %.1fs", r.page, snippet.Line, snippet.Language, time.Since(began).Seconds())
	}
	for _, not := range r.notRun {
		fmt.Println("SKIPPED (1 snippet):", not)
	}
	if r.ran+len(r.notRun) == 0 {
		r.t.Errorf("%s: there is no snippet", r.page)
	}
}

func (r *reader) take(s page.Snippet) {
	r.t.Helper()
	switch {
	case s.Printed:
		r.wantPrinted(s)
	case s.Language == "text" || s.Language == "mermaid":
	case s.NotRun != "":
		r.notRun = append(r.notRun, fmt.Sprintf("%s:%d: %s", r.page, s.Line, s.NotRun))
	case s.File != "":
		harness.Must(r.t, os.WriteFile(filepath.Join(r.dir, s.File), []byte(s.Text), 0o600))
	case s.Language == "yaml" && strings.Contains(s.Text, "kind: "):
		r.must(page.Snippet{Line: s.Line, Text: "kubectl apply -f - <<'END OF YAML'\n" + s.Text + "END OF YAML\n"})
	case s.Language == "yaml": // values of the chart, which has a schema
		r.must(page.Snippet{Line: s.Line, Text: "helm template configstamp deploy/chart --values - >/dev/null <<'END OF YAML'\n" + s.Text + "END OF YAML\n"})
	case s.Language == "sh":
		r.must(s)
	default:
		r.notRun = append(r.notRun, fmt.Sprintf("%s:%d: it does not say that it is sh, yaml or text, but %q", r.page, s.Line, s.Language))
	}
}

// must runs a snippet, which must succeed.
func (r *reader) must(s page.Snippet) {
	r.t.Helper()
	var err error
	if r.printed, err = r.try(s); err != nil {
		r.t.Fatalf("%s:%d: %v\n%s\n%s", r.page, s.Line, err, s.Text, r.printed)
	}
	r.last = s
	r.ran++
}

// wantPrinted checks that the last snippet printed what the page shows. What takes its time is asked again.
func (r *reader) wantPrinted(s page.Snippet) {
	r.t.Helper()
	for until := time.Now().Add(patience); s.Missing(r.printed) != ""; time.Sleep(time.Second) {
		if time.Now().After(until) {
			r.t.Fatalf("%s:%d: %q is not printed by\n%s\nbut:\n%s", r.page, s.Line, s.Missing(r.printed), r.last.Text, r.printed)
		}
		r.printed, _ = r.try(r.last)
	}
}

func (r *reader) try(s page.Snippet) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), bound)
	defer cancel()
	editor := "KUBE_EDITOR=true" // it changes nothing
	if s.Edit != "" {
		editor = "KUBE_EDITOR=sed -i -e '" + s.Edit + "'"
	}
	return r.shell(ctx, append(r.environment, editor), fmt.Sprintf(`if [ -e %[1]q ]; then . %[1]q; else cd %[2]q; fi
trap 'echo "cd \"$PWD\""> %[1]q; export -p >> %[1]q' EXIT
%[3]s`, r.state, r.dir, s.Text))
}

func (r *reader) shell(ctx context.Context, environment []string, script string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\n"+script)
	command.Env = environment
	out, err := command.CombinedOutput()
	return string(out), err
}
