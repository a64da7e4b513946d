// Package snippets runs the commands of the pages for new users: each page from top to bottom, in a
// copy of the checkout, on a real cluster with a real node (needs root). It types each command once,
// and does nothing that the page does not say, except for what pages says was done before. Package
// page finds the snippets, and says how a page marks one that cannot run here. A snippet is a
// shell's (sh), an object or a file of values (yaml), or only to be read (text, mermaid).
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
	"github.com/configstamp/configstamp/e2e/snippets/page"
)

// cluster is what a page presupposes that says "in your cluster": nodes that can pull its images.
const cluster = "apt-get update && apt-get install -y busybox-static\nmake cluster-up cluster-images\neval \"$(make --silent cluster-env)\"\n"

var pages = []struct {
	name  string
	given string // the commands before the page's first one
}{
	{name: "docs/quick-start.md"}, // which brings its cluster
	{name: "README.md", given: cluster + "(cd e2e/cluster && go run ./cmd/cluster --name \"$CLUSTER\" cert-manager)\n" +
		"mkdir -p bin && ln -sf \"$(make --silent helm | tail -1)\" bin/helm && export PATH=\"$PWD/bin:$PATH\""},
	{name: "examples/README.md", given: cluster + "kubectl apply -f deploy/install-self-managed.yaml\nkubectl -n configstamp rollout status deployment/configstamp --timeout=2m"},
}

// bound is for one snippet. The first one may have to build Kubernetes.
const bound = 25 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(harness.EnvEnabled) == "" {
		fmt.Printf("skipped: these tests start a Kubernetes; %s=1 runs them (see e2e/README.md)\n", harness.EnvEnabled)
		return
	}
	if os.Geteuid() != 0 {
		fmt.Println("SKIPPED (1 check): the snippets of the pages: they run real containers, which needs root")
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

// reader reads a page and types its commands.
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
	root, err := harness.Root()
	harness.Must(t, err)
	r := &reader{t: t, page: name, dir: t.TempDir(), state: filepath.Join(t.TempDir(), "state")}
	own := t.TempDir()
	r.environment = append(os.Environ(), fmt.Sprintf("CLUSTER=snippets-%d", os.Getpid()), "GOFLAGS=-buildvcs=false", "KUBECACHEDIR="+own,
		"HELM_CACHE_HOME="+own, "HELM_CONFIG_HOME="+own, "HELM_DATA_HOME="+own)
	_, err = r.shell(t.Context(), fmt.Sprintf("cd %q && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory %q", root, r.dir))
	harness.Must(t, err)
	t.Cleanup(func() { // also when the page failed halfway
		if out, err := r.shell(context.Background(), fmt.Sprintf("make -C %q cluster-down", r.dir)); err != nil {
			t.Errorf("taking the cluster down: %v\n%s", err, out)
		}
	})
	return r
}

// read does what the page says, and prints which snippets it left out.
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

// wantPrinted checks that the last snippet printed what the page shows. A command is typed once: a
// page says how to wait for what takes its time.
func (r *reader) wantPrinted(s page.Snippet) {
	r.t.Helper()
	if missing := s.Missing(r.printed); missing != "" {
		r.t.Fatalf("%s:%d: %q is not printed by\n%s\nbut:\n%s", r.page, s.Line, missing, r.last.Text, r.printed)
	}
}

func (r *reader) try(s page.Snippet) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), bound)
	defer cancel()
	editor := "true" // it changes nothing
	if s.Edit != "" {
		editor = "sed -i -e '" + s.Edit + "'"
	}
	return r.shell(ctx, fmt.Sprintf(`if [ -e %[1]q ]; then . %[1]q; else cd %[2]q; fi
export KUBE_EDITOR="$1"
trap 'echo "cd \"$PWD\""> %[1]q; export -p >> %[1]q' EXIT
%[3]s`, r.state, r.dir, s.Text), editor)
}

func (r *reader) shell(ctx context.Context, script string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "bash", append([]string{"-c", "set -euo pipefail\n" + script, "bash"}, args...)...)
	command.Env = r.environment
	out, err := command.CombinedOutput()
	return string(out), err
}
