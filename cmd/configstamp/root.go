package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// Set by the linker.
//
//nolint:gochecknoglobals // -ldflags -X reaches nothing else
var (
	version = "dev"
	commit  = "unknown"
)

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "configstamp",
		Short:         "Rolls out workloads when the ConfigMaps and Secrets that they use change",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(webhookCommand(), controllerCommand(), &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(command.OutOrStdout(), "configstamp %s (commit %s, %s %s/%s)\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	})
	return root
}
