package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/order"
)

// purgeFlags are those of snapshots by which some are deleted.
type purgeFlags struct {
	on, yes bool
	only    []string
}

func addPurgeFlags(command *cobra.Command, flags *purgeFlags) {
	command.Flags().BoolVar(&flags.on, "purge", false, "delete the snapshots whose content the ConfigMap does not hold any more; without --yes, only say which")
	command.Flags().BoolVar(&flags.yes, "yes", false, "with --purge: delete them, which cannot be undone")
	command.Flags().StringSliceVar(&flags.only, "only", nil, "with --purge: only this snapshot, by its name or the digits at its end; may be repeated")
}

// purge deletes snapshots of a source, those of its present content aside: these would be
// made again.
func (p *plugin) purge(ctx context.Context, args []string, flags *purgeFlags, output format) error {
	asOrder := orderFlags{output: output, dryRun: dryRun(order.Client)}
	if flags.yes {
		asOrder.dryRun = dryRun(order.None)
	}
	o, namespace, err := p.orders(ctx, &asOrder)
	if err != nil {
		return err
	}
	k, err := p.kept(ctx, o.Cluster, namespace, args)
	if err != nil {
		return err
	}
	chosen := k.snapshots
	if len(flags.only) > 0 {
		chosen = nil
	}
	for _, name := range flags.only {
		snapshot, err := k.named(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, snapshot)
	}
	dids, err := p.purgeAll(ctx, o, k, chosen)
	if err != nil {
		return err
	}
	if err := p.printDids(o, &asOrder, dids); err != nil {
		return err
	}
	for i := range dids {
		if dids[i].Result == order.Purged && !flags.yes {
			return errors.New("nothing was deleted, as this cannot be undone: say it again with --yes")
		}
	}
	return nil
}

func (p *plugin) purgeAll(ctx context.Context, o *order.Orders, k *kept, chosen []*corev1.ConfigMap) ([]order.Did, error) {
	used, err := usersOf(ctx, o.Cluster, o.Settings, k)
	if err != nil {
		return nil, err
	}
	reading, err := readers(ctx, o.Cluster, k)
	if err != nil {
		return nil, err
	}
	if gaps := o.Cluster.Gaps(); len(gaps) > 0 {
		return nil, fmt.Errorf("nothing was deleted: %s could not be read (%s), and something there may need a snapshot", gaps[0].What, gaps[0].Why)
	}
	var dids []order.Did
	for _, snapshot := range chosen {
		uses := used[snapshot.Name]
		uses.Pods, uses.Now = reading[snapshot.Name], k.isNow(snapshot)
		dids = append(dids, o.Purge(ctx, snapshot, uses))
	}
	return dids, nil
}
