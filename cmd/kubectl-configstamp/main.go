// Command kubectl-configstamp is the kubectl plugin: "kubectl configstamp why
// deployment/web-app". It answers with its user's own rights and nothing else.
//
// A command parses its arguments, has cmd/kubectl-configstamp/internal/inspect read the cluster, has
// cmd/kubectl-configstamp/internal/answer draw the conclusions, and prints them; it holds no rule. To add one: a
// file with a function (*plugin).nameCommand, and a line in root.go.
//
// root.go lists the commands, and holds what they share (plugin). args.go reads what
// people name, complete.go completes it. print.go prints: documents for -o json and yaml,
// tables of 80 columns, gaps. The commands: users.go, status.go with asking.go (what is
// shown until the webhook has answered), why.go, impact.go with manifests.go (what is planned) and impact_print.go, wait.go;
// and those that change something, which package order carries out: order.go (what they
// share), pause.go, resume.go, roll.go, undo.go (and accept), snapshots.go (which
// also lists them).
//
// doctor.go looks for what is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // windows name time zones, and Windows has none

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := rootCommand(newPlugin(streams, time.Now))
	root.SetArgs(arguments(os.Args))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	os.Exit(codeOf(err))
}

// arguments are those of the command line. kubectl completes a plugin by a program of the
// name kubectl_complete-<plugin>: under that name (a link) this one completes.
func arguments(args []string) []string {
	if strings.HasPrefix(filepath.Base(args[0]), "kubectl_complete-") {
		return append([]string{"__complete"}, args[1:]...)
	}
	return args[1:]
}

// exit is an error that ends the program with a code of its own.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string { return e.err.Error() }
func (e exit) Unwrap() error { return e.err }

// codeOf is the exit code for an error: 0 for none, 1 unless it says otherwise.
func codeOf(err error) int {
	var own exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.code
	}
	return 1
}
