package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/internal/order"
)

func (p *plugin) rollCommand() *cobra.Command {
	var flags orderFlags
	command := &cobra.Command{
		Use:   "roll WORKLOAD",
		Short: "Have one workload take the new content now, whatever holds it",
		Long: "Has one workload roll now, if it is out of date: out of turn, and in spite of pause,\n" +
			"window, min-interval or a halt. Where nothing has changed, nothing rolls. It is\n" +
			"asked by a dry run first.\n\n" +
			"Under configstamp.dev/mode=observe this is how a person approves a change: the\n" +
			"workload is restarted, as kubectl rollout restart does, and takes the new content.",
		Example: "  kubectl configstamp roll deployment/web-app\n" +
			"  kubectl configstamp roll sts/db -n shop --dry-run=server",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: p.completeWorkload,
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
