package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/order"
)

func (p *plugin) rollCommand() *cobra.Command {
	var flags orderFlags
	command := &cobra.Command{
		Use:   "roll WORKLOAD",
		Short: "Roll one workload to the new content now, whatever holds it",
		Long: "Rolls one workload now, if it is out of date. It does not wait for its turn, and is\n" +
			"not held by pause, window, min-interval or a halt. If nothing has changed, nothing\n" +
			"rolls: a dry run finds this out first.\n\n" +
			"With configstamp.dev/mode=observe this is how a person approves a change: the\n" +
			"workload is restarted, as with kubectl rollout restart, and gets the new content.",
		Example: "  kubectl configstamp roll deployment/web-app\n" +
			"  kubectl configstamp roll sts/db -n shop --dry-run=server",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.roll(command.Context(), args, &flags)
		},
	}
	addOrderFlags(command, &flags)
	return command
}

func (p *plugin) roll(ctx context.Context, args []string, flags *orderFlags) error {
	o, namespace, err := p.orders(ctx, flags)
	if err != nil {
		return err
	}
	w, err := p.workload(ctx, o, namespace, args)
	if err != nil {
		return err
	}
	fleet, err := o.Cluster.One(ctx, o.Settings, w)
	if err != nil {
		return err
	}
	return p.printDids(o, flags, []order.Did{o.Roll(ctx, fleet, p.now())})
}
