// Command cluster makes Kubernetes clusters on this machine for tests and demonstrations, from Go modules and Debian
// packages alone: no registry, no Docker, no prebuilt control plane. README.md says how to use it; each command is in a
// file of its name, and does little more than read flags and call package lifecycle.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/builds"
	"github.com/configstamp/configstamp/e2e/cluster/lifecycle"
	"github.com/configstamp/configstamp/e2e/cluster/progress"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		os.Exit(1)
	}
}

// common is what every command takes.
type common struct{ name string }

func command() *cobra.Command {
	var c common
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "Kubernetes clusters on this machine, for tests and demonstrations",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&c.name, "name", "configstamp", "which cluster; several can run side by side")
	root.AddCommand(
		upCommand(&c), downCommand(&c), restartCommand(&c), statusCommand(&c), kubeconfigCommand(&c), envCommand(&c),
		buildCommand(), imageCommand(&c), loadImageCommand(&c), certManagerCommand(&c), watchdogCommand(&c),
	)
	return root
}

// host is where this command makes clusters. Progress goes to standard error: standard output is for results.
func host() (lifecycle.Host, error) {
	h, err := hostWithoutSources()
	if err != nil {
		return h, err
	}
	h.Sources, err = builds.FindSources(os.Getenv)
	return h, err
}

func hostWithoutSources() (lifecycle.Host, error) {
	cache, err := state.CacheDir(os.Getenv)
	return lifecycle.Host{Cache: cache, Kubernetes: os.Getenv("CONFIGSTAMP_KUBERNETES"), Log: progress.New(os.Stderr)}, err
}

// cluster is the one that --name means, up or not.
func (c *common) cluster() (*state.Cluster, error) {
	if err := state.ValidateName(c.name); err != nil {
		return nil, err
	}
	h, err := hostWithoutSources()
	if err != nil {
		return nil, err
	}
	return state.Load(h.Cache, c.name)
}
