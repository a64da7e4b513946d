package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/lifecycle"
)

func freezeCommand(c *common) *cobra.Command {
	return toComponents(c, "freeze", "Stop components of a cluster in their tracks: they keep their connections, and answer nobody", lifecycle.Host.Freeze)
}

func thawCommand(c *common) *cobra.Command {
	return toComponents(c, "thaw", "Let frozen components go on", lifecycle.Host.Thaw)
}

func toComponents(c *common, use, short string, do func(h lifecycle.Host, ctx context.Context, name string, components []string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " COMPONENT...",
		Short: short,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, components []string) error {
			h, err := hostWithoutSources()
			if err != nil {
				return err
			}
			return do(h, cmd.Context(), c.name, components)
		},
	}
}
