package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/order"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

func (p *plugin) undoCommand() *cobra.Command {
	var flags orderFlags
	var revision int64
	command := &cobra.Command{
		Use:   "undo WORKLOAD",
		Short: "Bring a workload back to an earlier revision, with the content of then",
		Long: "Brings a workload back to one of its revisions, as kubectl rollout undo does.\n" +
			"Where pods are pinned to snapshots (configstamp.dev/pin), ConfigMaps go back to\n" +
			"the content of that revision as well; the warnings say which ones do. configstamp\n" +
			"then keeps that content until the ConfigMap changes again, or until kubectl\n" +
			"configstamp accept.",
		Example: "  kubectl configstamp undo deployment/web-app --dry-run=server\n" +
			"  kubectl configstamp undo sts/db -n shop --to-revision 3 --dry-run=client",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.orderWorkload(command.Context(), args, &flags, func(ctx context.Context, o *order.Orders, w *seen.Workload) order.Did {
				return o.Undo(ctx, w, revision)
			})
		},
	}
	addOrderFlags(command, &flags)
	command.Flags().Int64Var(&revision, "to-revision", 0, "number of the revision, as kubectl configstamp why shows it; 0 is the one before the newest")
	return command
}

func (p *plugin) acceptCommand() *cobra.Command {
	var flags orderFlags
	command := &cobra.Command{
		Use:   "accept WORKLOAD",
		Short: "Take content after all that an undo has declined",
		Long: "Ends what an undo has declined: the workload takes the present content of its\n" +
			"ConfigMaps and rolls out now. It does not wait for its turn, as with roll.",
		Example: "  kubectl configstamp accept deployment/web-app\n" +
			"  kubectl configstamp accept sts/db -n shop --dry-run=server",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.orderWorkload(command.Context(), args, &flags, func(ctx context.Context, o *order.Orders, w *seen.Workload) order.Did {
				return o.Accept(ctx, w)
			})
		},
	}
	addOrderFlags(command, &flags)
	return command
}

// orderWorkload carries out an order about one workload, which is not asked about first.
func (p *plugin) orderWorkload(ctx context.Context, args []string, flags *orderFlags, do func(context.Context, *order.Orders, *seen.Workload) order.Did) error {
	o, namespace, err := p.orders(ctx, flags)
	if err != nil {
		return err
	}
	w, err := p.workload(ctx, o, namespace, args)
	if err != nil {
		return err
	}
	return p.printDids(o, flags, []order.Did{do(ctx, o, w)})
}
