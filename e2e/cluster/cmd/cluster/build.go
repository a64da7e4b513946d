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
	ours := []string{"kubernetes", "kwok", "cert-manager", "pause"}
	var module string
	cmd := &cobra.Command{
		Use:   "build [kubernetes|kwok|cert-manager|pause]... | build --module DIR IMPORT-PATH...",
		Short: "Build what is not in the cache yet (all, what is named, or programs of other projects), and print the paths",
		Args: func(cmd *cobra.Command, args []string) error {
			if module != "" {
				return cobra.MinimumNArgs(1)(cmd, args)
			}
			return cobra.OnlyValidArgs(cmd, args)
		},
		ValidArgs: ours,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := host()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = ours
			}
			for _, name := range args {
				program := h.Sources.Other(module, name)
				if module == "" {
					program, err = ourProgram(h, name)
				}
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
	cmd.Flags().StringVar(&module, "module", "", "the directory of a module that requires what is to be built")
	return cmd
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
