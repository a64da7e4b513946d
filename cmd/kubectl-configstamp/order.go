package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/order"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// orderFlags are those that all commands have which change something.
type orderFlags struct {
	output format
	dryRun dryRun
}

// dryRun is the value of --dry-run.
type dryRun order.DryRun

// Set implements pflag.Value.
func (d *dryRun) Set(text string) error {
	switch to := order.DryRun(text); to {
	case order.None, order.Client, order.Server:
		*d = dryRun(to)
		return nil
	}
	return errors.New("want none, client or server")
}

// String implements pflag.Value.
func (d *dryRun) String() string { return string(*d) }

// Type implements pflag.Value.
func (d *dryRun) Type() string { return "string" }

// addOrderFlags adds -o and --dry-run.
func addOrderFlags(command *cobra.Command, flags *orderFlags) {
	addFormat(command, &flags.output)
	flags.dryRun = dryRun(order.None)
	command.Flags().Var(&flags.dryRun, "dry-run", "none; client: only say what would be written; server: the API server tries the write and does not store it")
	known := cobra.FixedCompletions([]string{string(order.None), string(order.Client), string(order.Server)}, cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("dry-run", known); err != nil {
		panic(err) // the flag stands above
	}
}

// orders is what carries orders out, and the namespace of -n.
func (p *plugin) orders(ctx context.Context, flags *orderFlags) (*order.Orders, string, error) {
	cluster, settings, namespace, err := p.look(ctx, false)
	return &order.Orders{Cluster: cluster, Settings: settings, DryRun: order.DryRun(flags.dryRun)}, namespace, err
}

// workload reads the workload that an order is about.
func (p *plugin) workload(ctx context.Context, o *order.Orders, namespace string, args []string) (*seen.Workload, error) {
	w, pod, err := workloadOf(ctx, o.Cluster, o.Settings, namespace, args)
	switch {
	case err != nil:
		return nil, err
	case pod != nil:
		return nil, fmt.Errorf("pod/%s was made by %s: name that workload", pod.Name, w.Text())
	case w.Kind.CreateOnly:
		return nil, fmt.Errorf("%s is stamped only when it is created: there is nothing to do", w.Text())
	}
	return w, nil
}

// printDids prints what became of orders. What was refused is the error.
func (p *plugin) printDids(o *order.Orders, flags *orderFlags, dids []order.Did, notes ...string) error {
	if dids == nil {
		dids = []order.Did{}
	}
	err := p.print(flags.output, dids, o.Cluster.Gaps(), func(to io.Writer) {
		same := 0
		for i := range dids {
			switch did := &dids[i]; {
			case flags.output == names:
				if did.Result.Changed() {
					fmt.Fprintln(to, did.Object)
				}
			case did.Quiet && len(dids) > 1 && flags.output != wide:
				same++
			case did.Result != order.Refused:
				p.printDid(to, did, o.DryRun)
			}
		}
		if same > 0 {
			paragraph(to, "", counted(same, "workload has its records", "workloads have their records")+" (-o wide names all).")
		}
		if flags.output != names {
			for _, note := range notes {
				paragraph(to, "", note)
			}
		}
	})
	if err != nil {
		return err
	}
	p.warnOfAppliers(dids)
	var refused []string
	for i := range dids {
		if did := &dids[i]; did.Result == order.Refused {
			text := did.Object + inNamespace(did.Namespace) + ": " + did.Why
			if did.Next != "" {
				text += " (" + did.Next + ")"
			}
			refused = append(refused, text)
		}
	}
	if len(refused) > 0 {
		return errors.New(strings.Join(refused, "\nerror: "))
	}
	return nil
}

// warnOfAppliers warns of those who may write again what an order has overwritten.
func (p *plugin) warnOfAppliers(dids []order.Did) {
	const named = 3
	objects := map[[2]string][]string{} // by the manager, and the annotation
	for i := range dids {
		if did := &dids[i]; did.MayBeUndoneBy != "" {
			key, _, _ := strings.Cut(did.Wrote, "=")
			of := [2]string{did.MayBeUndoneBy, key}
			objects[of] = append(objects[of], did.Object+inNamespace(did.Namespace))
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(objects), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		on := objects[of]
		text := strings.Join(on[:min(named, len(on))], ", ")
		if more := len(on) - named; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(p.ErrOut, "Warning: %s writes %s on %s, and may write it again: change it where %[1]s reads it\n", of[0], of[1], text)
	}
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " in namespace " + namespace
}

// printDid prints what became of one object.
func (p *plugin) printDid(to io.Writer, did *order.Did, dry order.DryRun) {
	head := did.Object + inNamespace(did.Namespace) + " " + string(did.Result)
	if dry != order.None {
		head += fmt.Sprintf(" (%s dry run)", dry)
	}
	paragraph(to, "", head+": "+did.Why)
	if did.Wrote != "" {
		wrote := "wrote"
		if dry != order.None {
			wrote = "would write"
		}
		fmt.Fprintln(to, "  "+wrote+" "+did.Wrote)
	}
	list(to, "It overrules:", did.Overrules)
	list(to, heading(did.Result), did.Overruled)
	list(to, "The API server warned:", did.Warnings)
	if did.Next != "" {
		paragraph(to, "  ", "Next: "+did.Next)
	}
}

// heading says what it is that overrules an order.
func heading(result order.Result) string {
	switch result {
	case order.Paused:
		return "These still roll:"
	case order.Resumed:
		return "These still wait:"
	default:
		return "Still paused:"
	}
}

// counted is a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// list prints texts under a heading, the first few of many.
func list(to io.Writer, heading string, texts []string) {
	const first = 20
	if len(texts) == 0 {
		return
	}
	fmt.Fprintln(to, "  "+heading)
	for _, text := range texts[:min(first, len(texts))] {
		paragraph(to, "    ", text)
	}
	if more := len(texts) - first; more > 0 {
		fmt.Fprintf(to, "    and %d more (-o json names all)\n", more)
	}
}

// targets are what pause and unpause are about.
func (p *plugin) targets(ctx context.Context, o *order.Orders, namespace string, args []string, all bool, selector string) ([]inspect.Target, error) {
	switch {
	case all && (len(args) > 0 || selector != ""), selector != "" && len(args) > 0:
		return nil, errors.New("want one of WORKLOAD, namespace/NAME, --selector, --all-namespaces")
	case all:
		return nil, nil
	case selector != "":
		workloads, err := o.Cluster.Workloads(ctx, o.Settings, inspect.Which{Namespace: namespace, Selector: selector})
		var targets []inspect.Target
		for _, w := range workloads {
			if !w.Owned {
				targets = append(targets, inspect.OfWorkload(w.Ref))
			}
		}
		if err == nil && len(targets) == 0 {
			err = fmt.Errorf("no workload in namespace %s has the labels %s", namespace, selector)
		}
		return targets, err
	case len(args) == 0:
		return nil, errors.New("want a WORKLOAD, namespace/NAME, --selector or --all-namespaces")
	}
	if kind, name, found := strings.Cut(words(args), "/"); found && (kind == "namespace" || kind == "namespaces" || kind == "ns") {
		return []inspect.Target{inspect.OfNamespace(name)}, nil
	}
	w, err := p.workload(ctx, o, namespace, args)
	if err != nil {
		return nil, err
	}
	return []inspect.Target{inspect.OfWorkload(w.Ref)}, nil
}
