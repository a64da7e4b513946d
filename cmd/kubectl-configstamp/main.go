// Command kubectl-configstamp is the kubectl plugin: "kubectl configstamp why
// deployment/web-app". It answers with its user's own rights and nothing else.
//
// root.go lists the commands, and holds what they share (plugin). To add a command: a file
// with a function (*plugin).nameCommand, and a line in root.go. What commands are made of:
//
//   - task.go is one run of a command: -o, the cluster's settings, and texts for people.
//   - objects.go reads and patches objects as kubectl does (builder, read, workload, list,
//     target.patch), and suggest.go proposes names for wrong ones.
//   - objectprinter.go prints objects for -o, makes the cluster's texts printable (text,
//     printable), and has the one format of times (at). print.go prints tables and paragraphs.
//   - user.go: who the user is, what the user may do, and what time it is at the API server.
//   - args.go reads names of sources.
//   - settings.go reads what counts in the whole cluster, kinds.go which workloads it serves,
//     served.go says whether a workload is served, and outcome.go asks the webhook.
//
// order.go is what orders share: --dry-run, annotations that are changed only if nobody
// else has, and what is printed of an object. The orders: pause.go (with managers.go: which
// tool may write an annotation again), resume.go, roll.go and rollall.go, undo.go (and accept),
// and restore.go (with snapshots.go).
//
// What became of an edit, the leader of configstamp writes onto ConfigRollouts. reports.go reads
// and prints them; subject.go reads the workload that is asked about. status.go and why.go
// (with revisions.go) print, and wait.go ends with an exit code: verdict.go has its conclusions, and
// ask.go what it asks the webhook.
//
// users.go lists the workloads that use a source; with -f, dryrun.go tries manifests. doctor.go has a table of checks:
// doctor_installation.go looks at configstamp itself, and doctor_settings.go at what people have written for it.
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

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(logr.Discard()) // client-go logs what commands print as not looked at
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := rootCommand(newPlugin(streams, time.Now))
	root.SetArgs(arguments(os.Args))
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprint(os.Stderr, errorText(err))
	}
	os.Exit(codeOf(err))
}

// errorText is what is printed of an error, a line for each of several.
func errorText(err error) string {
	return "error: " + printable(strings.ReplaceAll(err.Error(), "\n", "\nerror: ")) + "\n"
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
