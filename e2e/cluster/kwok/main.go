// Command kwok is upstream's kwok with the stages that the tests need built in: nodes that stay Ready, and pods that
// become Ready, complete and go at once. `kwok stages` prints those; with any other arguments it is upstream's kwok.
//
// It is a module of its own because it wants other versions than the rest, and because only scale tests need it.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	nodes "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	leases "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	pods "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "stages" {
		fmt.Println(stages())
		return
	}
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		os.Exit(1)
	}
}

// stages is one YAML stream of upstream's stages, for --config.
func stages() string {
	return strings.Join([]string{
		nodes.DefaultNodeInit,
		leases.DefaultNodeHeartbeatWithLease,
		pods.DefaultPodReady,
		pods.DefaultPodComplete,
		pods.DefaultPodDelete,
	}, "\n---\n")
}

// run does what upstream's cmd/kwok does.
func run() error {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx := signals.SetupSignalContext()
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}
