package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/lifecycle"
)

func restartCommand(c *common) *cobra.Command {
	var r lifecycle.Restart
	cmd := &cobra.Command{
		Use:   "restart [--save DIR] [--restore DIR] COMPONENT...",
		Short: "End components of a cluster as a crash does, and start them again",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, components []string) error {
			if (r.Save != "" || r.Restore != "") && !slices.Contains(components, "etcd") {
				return errors.New("etcd's data can only be copied while etcd is down: name it too")
			}
			h, err := hostWithoutSources()
			if err != nil {
				return err
			}
			r.Components = components
			return h.Restart(cmd.Context(), c.name, r)
		},
	}
	cmd.Flags().StringVar(&r.Save, "save", "", "copy etcd's data to this directory in between")
	cmd.Flags().StringVar(&r.Restore, "restore", "", "put etcd's data back from this directory in between")
	return cmd
}
