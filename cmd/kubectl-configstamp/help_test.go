package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/spf13/cobra"
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
	root.SetArgs(append(strings.Fields(text), "--kubeconfig", server.Kubeconfig(t, "shop")))
	if err := root.ExecuteContext(ctx); err != nil || errOut.Len() > 0 {
		t.Errorf("%s: %v\n%s", line, err, errOut.String())
	}
}

func TestCompletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := piped(t)
		for line, want := range map[string][]string{
			"users ":               {"configmap/", "secret/"},
			"users cm/":            {"cm/payment-api-config"},
			"impact cm/":           {"cm/payment-api-config"},
			"users secret/":        {"secret/db"},
			"snapshots ":           {"configmap/"},
			"snapshots secret/":    {},
			"why dep":              {"deployment/"},
			"why deployment/":      {"deployment/failed", "deployment/in-step", "deployment/mislabelled", "deployment/paused"},
			"status sts/":          {"sts/halted"},
			"why deploy/":          {"deploy/failed"},
			"status --namespace ":  {"shop"},
			"status --output ":     {"wide", "json", "yaml", "name"},
			"why deployment/a dep": {},
		} {
			args := strings.Split(line, " ")
			got := complete(t, server, args)
			for _, word := range want {
				if !slices.Contains(got, word) {
					t.Errorf("%q completes to %q, want %q", line, got, word)
				}
			}
			if len(want) == 0 && len(got) > 0 {
				t.Errorf("%q completes to %q", line, got)
			}
		}
		if got := arguments([]string{"/usr/local/bin/kubectl_complete-configstamp", "users", ""}); !slices.Equal(got, []string{"__complete", "users", ""}) {
			t.Errorf("kubectl's own completion runs %q", got)
		}
	})
}

// complete are the completions of the last of some arguments.
func complete(t *testing.T, server *fakecluster.Server, args []string) []string {
	t.Helper()
	var out strings.Builder
	p := newPlugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard}, atThree)
	p.config.WrapConfigFn = server.Wrap
	root := rootCommand(p)
	root.SetArgs(slices.Concat([]string{cobra.ShellCompNoDescRequestCmd, "--kubeconfig", server.Kubeconfig(t, "shop")}, args))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(out.String())
	return slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, ":") })
}
