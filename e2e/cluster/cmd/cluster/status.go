package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/e2e/cluster/api"
	"github.com/configstamp/configstamp/e2e/cluster/lifecycle"
	"github.com/configstamp/configstamp/e2e/cluster/process"
	"github.com/configstamp/configstamp/e2e/cluster/state"
)

func statusCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say what runs of a cluster; fails if it is not all well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := c.cluster()
			if err != nil {
				return err
			}
			records, err := process.Records(cluster.Records())
			if err != nil {
				return err
			}
			return lifecycle.Client(cluster, func(client *api.Client) error {
				return printStatus(cmd.Context(), cmd.OutOrStdout(), cluster, records, client)
			})
		},
	}
}

func printStatus(ctx context.Context, out io.Writer, cluster *state.Cluster, records []process.Record, client *api.Client) error {
	fmt.Fprintf(out, "cluster %s, --node=%s, %s, since %s\n", cluster.Name, cluster.Node, cluster.Server, cluster.Created.Local().Format(time.DateTime))
	const padding = 2
	table := tabwriter.NewWriter(out, 0, 0, padding, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tMEMORY\tSTATE")
	unhealthy := 0
	for _, r := range records {
		condition := "running"
		switch {
		case !r.Alive():
			condition = "ended, see " + r.Log
			unhealthy++
		case r.Health != "":
			condition = "ready"
			if err := client.Healthy(ctx, r.Health); err != nil {
				condition = "not ready: " + err.Error()
				unhealthy++
			}
		}
		const mebibyte = 1 << 20
		fmt.Fprintf(table, "%s\t%d\t%d MiB\t%s\n", r.Component, r.PID, r.Memory()/mebibyte, condition)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	if ready, err := client.ReadyNodes(ctx); err == nil {
		fmt.Fprintf(out, "nodes ready: %d\n", ready)
	}
	if unhealthy > 0 || !cluster.Ready {
		return fmt.Errorf("cluster %s is not well: cluster up --name %s repairs it by starting anew, if its API server does not answer", cluster.Name, cluster.Name)
	}
	return nil
}
