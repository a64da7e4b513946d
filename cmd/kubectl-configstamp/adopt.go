package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/internal/inspect"
	"github.com/configstamp/configstamp/internal/order"
	"github.com/configstamp/configstamp/internal/seen"
)

type adoptFlags struct {
	orderFlags
	restart, all bool
	selector     string
}

func (p *plugin) adoptCommand() *cobra.Command {
	var flags adoptFlags
	command := &cobra.Command{
		Use:   "adopt [WORKLOAD]",
		Short: "Record what the sources of workloads without records hold now, or roll the workloads",
		Long: "Finds workloads that are opted in and have no record of what their sources held when\n" +
			"their pods started, and records what the sources hold now. Nothing restarts. These\n" +
			"workloads roll when content changes from now on. configstamp does the same by itself\n" +
			"within moments; this command says for which workloads it could not, and why. Without\n" +
			"a WORKLOAD it looks at all workloads in the namespace.\n\n" +
			"With --restart, workloads without any record get the current content: the command\n" +
			"writes configstamp.dev/adopt=restart on them, and configstamp rolls them in steps.",
		Example: "  kubectl configstamp adopt --dry-run=client\n" +
			"  kubectl configstamp adopt -n shop\n" +
			"  kubectl configstamp adopt deployment/web-app --restart",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: p.completeWorkload,
		RunE: func(command *cobra.Command, args []string) error {
			return p.adopt(command.Context(), args, &flags)
		},
	}
	addOrderFlags(command, &flags.orderFlags)
	command.Flags().BoolVar(&flags.restart, "restart", false, "roll workloads without any record, so that they get the current content")
	command.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "look at all namespaces")
	command.Flags().StringVarP(&flags.selector, "selector", "l", "", "look at workloads with these labels, such as app=web-app")
	return command
}

func (p *plugin) adopt(ctx context.Context, args []string, flags *adoptFlags) error {
	o, namespace, err := p.orders(ctx, &flags.orderFlags)
	if err != nil {
		return err
	}
	fleet, err := p.toAdopt(ctx, o, namespace, args, flags)
	if err != nil {
		return err
	}
	var dids []order.Did
	left := 0
	for _, w := range fleet.Workloads {
		if standing, _ := fleet.Serves(w); standing == seen.NotServed && len(args) == 0 {
			left++
			continue
		}
		dids = append(dids, o.Adopt(ctx, fleet, w, flags.restart, p.now()))
	}
	var notes []string
	if left > 0 {
		notes = append(notes, counted(left, "workload is not opted in, and was left alone.", "workloads are not opted in, and were left alone."))
	}
	if len(dids) == 0 {
		notes = append(notes, "No workload here is opted in. To opt a namespace in: kubectl label namespace "+namespace+" configstamp.dev/inject=enabled")
	}
	return p.printDids(o, &flags.orderFlags, dids, notes...)
}

// toAdopt reads the workloads that adopt is about.
func (p *plugin) toAdopt(ctx context.Context, o *order.Orders, namespace string, args []string, flags *adoptFlags) (*seen.Fleet, error) {
	if len(args) == 0 {
		if flags.all {
			namespace = ""
		}
		return o.Cluster.Fleet(ctx, o.Settings, inspect.Which{Namespace: namespace, Selector: flags.selector}, p.progress())
	}
	if flags.all || flags.selector != "" {
		return nil, errors.New("you named one workload: leave out --all-namespaces and --selector")
	}
	w, err := p.workload(ctx, o, namespace, args)
	if err != nil {
		return nil, err
	}
	return o.Cluster.One(ctx, o.Settings, w)
}
