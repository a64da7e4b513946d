package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/order"
	"github.com/configstamp/configstamp/internal/rollout"
)

func (p *plugin) resumeCommand() *cobra.Command {
	var flags orderFlags
	command := &cobra.Command{
		Use:   "resume SOURCE",
		Short: "Let a halted change go on, although a workload failed with it",
		Long: "Lets a halted change of a ConfigMap or Secret go on: failures until now no longer\n" +
			"count. The command writes configstamp.dev/resume on the source, with the API\n" +
			"server's time. The halted workloads then roll, in steps. The next failure halts them\n" +
			"again. If you put the old content back, or fix it, you need no resume: the\n" +
			"workloads go on by themselves.",
		Example: "  kubectl configstamp resume configmap/payment-api-config\n" +
			"  kubectl configstamp resume secret/db -n shop --dry-run=server",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.resume(command.Context(), args, &flags)
		},
	}
	addOrderFlags(command, &flags)
	return command
}

func (p *plugin) resume(ctx context.Context, args []string, flags *orderFlags) error {
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
	did := o.Resume(ctx, fleet, rollout.SourceRef{Namespace: namespace, Source: source}, p.now())
	return p.printDids(o, flags, []order.Did{did})
}
