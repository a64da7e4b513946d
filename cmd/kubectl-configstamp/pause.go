package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/order"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

type pauseFlags struct {
	orderFlags
	order    order.Pause
	all      bool
	selector string
}

func (f *pauseFlags) add(command *cobra.Command) {
	addOrderFlags(command, &f.orderFlags)
	command.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "all namespaces in which something is opted in")
	command.Flags().StringVarP(&f.selector, "selector", "l", "", "each workload of the namespace with these labels, such as app=web-app")
}

func (p *plugin) pauseCommand() *cobra.Command {
	var flags pauseFlags
	command := &cobra.Command{
		Use:   "pause WORKLOAD|namespace/NAME",
		Short: "Hold the rollouts of one workload, of a namespace, or everywhere",
		Long: "Holds the rollouts that configstamp would begin. It writes configstamp.dev/pause on\n" +
			"the workload or the Namespace, and notes beside it who paused, and why. What changes\n" +
			"in the meantime rolls once, when the pause ends. unpause restores what the\n" +
			"annotation said before.\n\n" +
			"Rollouts that are under way continue. A changed template (kubectl apply, set image,\n" +
			"rollout restart) still rolls, and so does kubectl configstamp roll. In an incident\n" +
			"pause the Namespace: kubectl rollout undo restores a Deployment's own annotations\n" +
			"too.\n\n" +
			"A tool that applies configstamp.dev/pause itself, such as Flux or Argo CD, takes the\n" +
			"pause back at its next sync: a warning names the tool, so that you can pause there.",
		Example: "  kubectl configstamp pause namespace/shop --for 2h --reason INC-42\n" +
			"  kubectl configstamp pause deployment/web-app\n" +
			"  kubectl configstamp pause -l app=web-app\n" +
			"  kubectl configstamp pause -A --reason INC-42 --dry-run=server",
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.pause(command.Context(), args, &flags)
		},
	}
	flags.add(command)
	command.Flags().DurationVar(&flags.order.For, "for", 0, "how long to pause, such as 2h; without it, until somebody unpauses")
	command.Flags().StringVar(&flags.order.Reason, "reason", "", "why, for the next person on call, such as INC-42")
	return command
}

func (p *plugin) pause(ctx context.Context, args []string, flags *pauseFlags) error {
	if flags.order.For < 0 || flags.order.For > 0 && flags.order.For < time.Second {
		return fmt.Errorf("--for=%s: want how long to pause, such as 2h", flags.order.For)
	}
	o, namespace, err := p.orders(ctx, &flags.orderFlags)
	if err != nil {
		return err
	}
	targets, err := p.targets(ctx, o, namespace, args, flags.all, flags.selector)
	if err != nil {
		return err
	}
	flags.order.By = o.Cluster.WhoAmI(ctx)
	var notes []string
	if flags.all {
		var names []string
		if names, err = p.optedIn(ctx, o); err != nil {
			return err
		}
		for _, name := range names {
			targets = append(targets, inspect.OfNamespace(name))
		}
		notes = append(notes, fmt.Sprintf("Namespaces that are opted in later are not paused (paused now: %d).", len(names)))
	}
	var dids []order.Did
	for _, of := range targets {
		dids = append(dids, o.Pause(ctx, of, flags.order))
	}
	value := order.PauseOf(dids)
	err = p.aside(ctx, o, dids, func(at int, namespace seen.Namespace, workloads []*seen.Workload) {
		if value[at] != "" {
			dids[at].Overruled = order.Overruled(o.Settings, namespace, workloads, value[at], p.now())
		}
	})
	if err != nil {
		return err
	}
	if changed(dids) {
		notes = append(notes, "Rollouts that are under way continue, and a changed template still rolls.")
	}
	return p.printDids(o, &flags.orderFlags, dids, notes...)
}

func changed(dids []order.Did) bool {
	return slices.ContainsFunc(dids, func(did order.Did) bool { return did.Result.Changed() })
}

func (p *plugin) unpauseCommand() *cobra.Command {
	var flags pauseFlags
	command := &cobra.Command{
		Use:   "unpause WORKLOAD|namespace/NAME",
		Short: "End a pause that the command pause began",
		Long: "Removes what kubectl configstamp pause wrote, and restores what the annotation said\n" +
			"before. Pauses that were written in another way stay, and are listed. What changed\n" +
			"in the meantime then rolls, in steps.",
		Example: "  kubectl configstamp unpause namespace/shop\n" +
			"  kubectl configstamp unpause deployment/web-app\n" +
			"  kubectl configstamp unpause -A",
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return p.unpause(command.Context(), args, &flags)
		},
	}
	flags.add(command)
	return command
}

func (p *plugin) unpause(ctx context.Context, args []string, flags *pauseFlags) error {
	o, namespace, err := p.orders(ctx, &flags.orderFlags)
	if err != nil {
		return err
	}
	targets, err := p.targets(ctx, o, namespace, args, flags.all, flags.selector)
	if err != nil {
		return err
	}
	if flags.all {
		namespaces, err := o.Cluster.Namespaces(ctx)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(namespaces)) {
			if order.IsPaused(namespaces[name].Annotations) {
				targets = append(targets, inspect.OfNamespace(name))
			}
		}
	}
	var dids []order.Did
	for _, of := range targets {
		dids = append(dids, o.Unpause(ctx, of))
	}
	err = p.aside(ctx, o, dids, func(at int, namespace seen.Namespace, workloads []*seen.Workload) {
		dids[at].Overruled = order.Own(o.Settings, namespace, workloads, p.now())
	})
	if err != nil {
		return err
	}
	var notes []string
	if flags.all {
		if notes, err = p.alsoPaused(ctx, o, targets); err != nil {
			return err
		}
	}
	switch {
	case changed(dids):
		notes = append(notes, "What changed in the meantime rolls now, in steps.")
	case flags.all && len(dids) == 0:
		notes = append([]string{"No Namespace is paused."}, notes...)
	}
	return p.printDids(o, &flags.orderFlags, dids, notes...)
}

// alsoPaused names the workloads that are paused by themselves, in other namespaces than
// those that were looked at.
func (p *plugin) alsoPaused(ctx context.Context, o *order.Orders, looked []inspect.Target) ([]string, error) {
	namespaces, err := o.Cluster.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	workloads, err := o.Cluster.Workloads(ctx, o.Settings, inspect.Which{})
	if err != nil {
		return nil, err
	}
	var notes []string
	for _, w := range workloads {
		if !slices.Contains(looked, inspect.OfNamespace(w.Namespace)) {
			for _, text := range order.Own(o.Settings, namespaces[w.Namespace], []*seen.Workload{w}, p.now()) {
				notes = append(notes, "Still paused: "+text)
			}
		}
	}
	return notes, nil
}

// aside hands on the workloads of each Namespace that something was done to.
func (p *plugin) aside(ctx context.Context, o *order.Orders, dids []order.Did, do func(at int, namespace seen.Namespace, workloads []*seen.Workload)) error {
	for at := range dids {
		name, is := strings.CutPrefix(dids[at].Object, "namespace/")
		if !is || dids[at].Result == order.Refused {
			continue
		}
		workloads, err := o.Cluster.Workloads(ctx, o.Settings, inspect.Which{Namespace: name})
		if err != nil {
			return err
		}
		namespaces, err := o.Cluster.Namespaces(ctx, name)
		if err != nil {
			return err
		}
		o.Cluster.AskNamespaces(ctx, o.Settings, namespaces, workloads)
		do(at, namespaces[name], workloads)
	}
	return nil
}

// optedIn lists the namespaces in which something is opted in, sorted.
func (p *plugin) optedIn(ctx context.Context, o *order.Orders) ([]string, error) {
	if len(o.Settings.Namespaces) > 0 {
		return o.Settings.Namespaces, nil
	}
	namespaces, err := o.Cluster.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	if gaps := o.Cluster.Gaps(); len(namespaces) == 0 && len(gaps) > 0 {
		return nil, fmt.Errorf("it cannot be checked which namespaces are opted in (%s): name one, as in namespace/shop", gaps[0])
	}
	which := inspect.Which{Selector: order.OptedInLabel}
	if len(o.Settings.Dialects) > 0 { // another product's annotations opt in, too
		which.Selector = ""
	}
	workloads, err := o.Cluster.Workloads(ctx, o.Settings, which)
	if err != nil {
		return nil, err
	}
	names := order.OptedIn(o.Settings, namespaces, workloads)
	if len(names) == 0 {
		return nil, errors.New("nothing says that a namespace is opted in; where the installation lists its namespaces, name them, as in namespace/shop")
	}
	return names, nil
}
