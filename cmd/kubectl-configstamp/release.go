package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/internal/inspect"
	"github.com/configstamp/configstamp/internal/order"
	"github.com/configstamp/configstamp/internal/rollout"
)

func (p *plugin) releaseCommand() *cobra.Command {
	var flags orderFlags
	command := &cobra.Command{
		Use:   "release SOURCE",
		Short: "Have a halted change go on, though a workload has failed with it",
		Long: "Says of a ConfigMap or Secret that the failures until now do not matter: it writes\n" +
			"configstamp.dev/resume on it, with the API server's time. What was halted goes on,\n" +
			"in steps. The next failure halts it again. Putting the old content back, or mending\n" +
			"it, needs no release: either goes on by itself.",
		Example: "  kubectl configstamp release configmap/payment-api-config\n" +
			"  kubectl configstamp release secret/db -n shop --dry-run=server",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: p.completeSource,
		RunE: func(command *cobra.Command, args []string) error {
			return p.release(command.Context(), args, &flags)
		},
	}
	addOrderFlags(command, &flags)
	return command
}

func (p *plugin) release(ctx context.Context, args []string, flags *orderFlags) error {
	source, err := sourceOf(args)
	if err != nil {
		return err
	}
	o, namespace, err := p.orders(ctx, flags)
	if err != nil {
		return err
	}
	fleet, err := o.Cluster.Fleet(ctx, o.Settings, inspect.Which{Namespace: namespace, Using: source}, p.progress())
	if err != nil {
		return err
	}
	did := o.Release(ctx, fleet, rollout.SourceRef{Namespace: namespace, Source: source}, p.now())
	return p.printDids(o, flags, []order.Did{did})
}
