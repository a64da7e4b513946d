package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/builds"
	"github.com/configstamp/configstamp/e2e/cluster/lifecycle"
)

// buildCommand fills the cache, which can take minutes, at a moment of the user's choice.
func buildCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "build [kubernetes|kwok|cert-manager|pause]...",
		Short:     "Build what is not in the cache yet (all, or what is named), and print the paths",
		ValidArgs: []string{"kubernetes", "kwok", "cert-manager", "pause"},
		Args:      cobra.OnlyValidArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := host()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = cmd.ValidArgs
			}
			for _, name := range args {
				program, err := ourProgram(h, name)
				if err != nil {
					return err
				}
				path, err := h.Builds().Build(cmd.Context(), program)
				if err != nil {
					return err
				}
				fmt.Fprintln(os.Stdout, path)
			}
			return nil
		},
	}
}

func ourProgram(h lifecycle.Host, name string) (builds.Program, error) {
	switch name {
	case "kwok":
		return h.Sources.Kwok(), nil
	case "cert-manager":
		return h.Sources.CertManager(), nil
	case "pause":
		return h.Sources.Pause(), nil
	}
	return h.Sources.Kubernetes(h.Kubernetes)
}
