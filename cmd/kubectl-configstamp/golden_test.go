package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// atThree is when the tests' person on call asks.
func atThree() time.Time { return time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC) }

// run runs the plugin as from a command line, in the namespace shop.
func run(t *testing.T, server *fakecluster.Server, args ...string) (out, errOut string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, atThree)
	p.config.WrapConfigFn = func(config *rest.Config) *rest.Config { return p.wrap(server.Wrap(config)) }
	root := rootCommand(p)
	root.SetArgs(append(args, "--kubeconfig", server.Kubeconfig(t, "shop"), "--cache-dir", t.TempDir()))
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	err := root.ExecuteContext(ctx)
	if err != nil {
		stderr.WriteString(errorText(err))
	}
	return stdout.String(), stderr.String(), codeOf(err)
}

// soon is when something that happens soon has not happened, however busy the machine is.
const soon = 2 * time.Minute

// first tells when something is written first.
type first struct {
	io.Writer
	once    sync.Once
	written chan struct{}
}

func (f *first) Write(text []byte) (int, error) {
	f.once.Do(func() { close(f.written) })
	return f.Writer.Write(text)
}

// golden compares what a command printed with testdata/<name>.golden, and that no line is
// longer than a terminal, unless it is made for machines.
func golden(t *testing.T, name string, server *fakecluster.Server, args ...string) {
	t.Helper()
	out, errOut, code := run(t, server, args...)
	text := "$ kubectl configstamp " + strings.Join(args, " ") + "\n" + out
	if errOut != "" {
		text += "--- stderr\n" + errOut
	}
	if code != 0 {
		text += "--- exit code " + string(rune('0'+code)) + "\n"
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (make generate writes it):\n%s", file, diff)
	}
	if strings.Contains(text, "never-shown") {
		t.Error("the content of a source was printed")
	}
	if strings.Contains(strings.Join(args, " "), "-o") {
		return
	}
	for line := range strings.SplitSeq(out, "\n") {
		if n := utf8.RuneCountInString(line); n > narrow && !strings.Contains(line, "kubectl") && !strings.Contains(line, "helm upgrade") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
