package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configstamp/configstamp/e2e/fakecluster"
)

// Every command has an example in its help, and each runs.
func TestExamples(t *testing.T) {
	server := fakecluster.New(t, "testdata/examples.yaml", "testdata/installation.yaml")
	server.Now = atThree()
	server.Dry = func(string, *unstructured.Unstructured) ([]string, error) { return []string{inStep}, nil }
	t.Chdir("testdata/examples") // the files that examples name
	root := rootCommand(newPlugin(genericiooptions.NewTestIOStreamsDiscard(), atThree))
	for _, command := range root.Commands() {
		if slices.Contains([]string{"completion", "help"}, command.Name()) {
			continue
		}
		if command.Example == "" {
			t.Errorf("%s has no example", command.Name())
		}
		for line := range strings.Lines(command.Example) {
			runExample(t, server, strings.TrimSpace(line))
		}
		for line := range strings.Lines(command.Long) {
			if len(line) > 85 {
				t.Errorf("%s: a line of its help is too long: %s", command.Name(), line)
			}
		}
	}
}

func runExample(t *testing.T, server *fakecluster.Server, line string) {
	t.Helper()
	_, text, ours := strings.Cut(line, "kubectl configstamp ")
	if !ours {
		t.Errorf("an example is not of kubectl configstamp: %q", line)
		return
	}
	text, _, _ = strings.Cut(text, " | ") // the shell's part
	text, _, _ = strings.Cut(text, " > ")
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	out := &first{Writer: io.Discard, written: make(chan struct{})}
	if strings.Contains(line, "--watch") { // it goes on until somebody stops it
		go func() {
			select {
			case <-out.written:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	var errOut strings.Builder
	root := rootCommand(newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &errOut}, atThree))
	root.SetArgs(append(strings.Fields(text), "--kubeconfig", server.Kubeconfig(t, "shop"), "--cache-dir", t.TempDir()))
	if err := root.ExecuteContext(ctx); err != nil || errOut.Len() > 0 {
		t.Errorf("%s: %v\n%s", line, err, errOut.String())
	}
}

func TestCompletion(t *testing.T) {
	if got := arguments([]string{"/usr/local/bin/kubectl_complete-configstamp", "users", ""}); !slices.Equal(got, []string{"__complete", "users", ""}) {
		t.Errorf("kubectl's own completion runs %q", got)
	}
}
