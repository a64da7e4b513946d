package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/answer"
	"github.com/configstamp/configstamp/internal/inspect"
)

func (p *plugin) podsCommand() *cobra.Command {
	var output format
	var all bool
	command := &cobra.Command{
		Use:   "pods [SOURCE | WORKLOAD]",
		Short: "Say which pods have the current content of their ConfigMaps and Secrets, and which older",
		Long: "Says which running pods have the current content of their ConfigMaps and Secrets, by\n" +
			"the time at which their containers started. It looks at the pods of a workload, of\n" +
			"all workloads that use a source, or of the whole namespace. Pods that are current\n" +
			"are only counted; -o wide lists them too, and each source of each pod.\n\n" +
			"  current  every container has the current content\n" +
			"  old      no container has the current content\n" +
			"  mixed    some containers have older content; others do not, or may not\n" +
			"  unknown  no container is known to have older content, but some may have it\n\n" +
			"The content of Secrets is not read.",
		Example: "  kubectl configstamp pods\n" +
			"  kubectl configstamp pods configmap/payment-api-config\n" +
			"  kubectl configstamp pods deployment/web-app -o wide\n" +
			"  kubectl configstamp pods -A -o json",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: p.completeAny,
		RunE: func(command *cobra.Command, args []string) error {
			return p.pods(command.Context(), args, all, output)
		},
	}
	addFormat(command, &output)
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "look at all namespaces")
	return command
}

func (p *plugin) pods(ctx context.Context, args []string, all bool, output format) error {
	if all && len(args) > 0 {
		return fmt.Errorf("you named a source or a workload: leave out --all-namespaces")
	}
	cluster, settings, namespace, err := p.look(ctx, all)
	if err != nil {
		return err
	}
	which := inspect.Which{Namespace: namespace}
	switch {
	case namesSource(args):
		which.Using, err = sourceOf(args)
	case len(args) > 0:
		w, _, found := workloadOf(ctx, cluster, settings, namespace, args)
		if err = found; err == nil {
			which.Only = w.Ref
		}
	}
	if err != nil {
		return err
	}
	fleet, err := p.fleet(ctx, cluster, settings, which, nil)
	if err == nil {
		err = cluster.Running(ctx, fleet, which)
	}
	if err != nil {
		return err
	}
	if gap := cluster.PodsUnlisted(namespace); gap != nil {
		return fmt.Errorf("%s, so nothing is known about them", gap)
	}
	truth := answer.TruthOf(fleet, which.Using, p.now())
	return p.print(output, truth, cluster.Gaps(), func(to io.Writer) { p.printTruth(to, &truth, which, output) })
}

// printTruth prints the pods that are not current; with -o wide, or of one workload, all.
func (p *plugin) printTruth(to io.Writer, truth *answer.Truth, which inspect.Which, output format) {
	if len(truth.Pods) == 0 && output != names {
		fmt.Fprintln(to, "No running pod that uses "+whatOf(which)+" is looked after by configstamp.")
		return
	}
	shown := truth.Pods
	if output != wide && which.Only.Kind == nil {
		shown = nil
		for _, pod := range truth.Pods {
			if pod.State != "current" {
				shown = append(shown, pod)
			}
		}
	}
	switch output {
	case names:
		for _, pod := range shown {
			fmt.Fprintln(to, "pod/"+pod.Pod)
		}
		return
	case wide:
		p.tabulateTruth(to, shown)
	default:
		for len(shown) > 0 {
			n := 1
			for n < len(shown) && shown[n].Workload == shown[0].Workload && shown[n].Namespace == shown[0].Namespace {
				n++
			}
			p.printPods(to, shown[:n])
			shown = shown[n:]
		}
	}
	if len(truth.Pods) == 1 {
		fmt.Fprintf(to, "1 pod: %s.\n", truth.Said())
		return
	}
	fmt.Fprintf(to, "%d pods: %s.\n", len(truth.Pods), truth.Said())
}

// whatOf says what is asked for.
func whatOf(which inspect.Which) string {
	if (which.Using != checksum.Source{}) {
		return which.Using.String()
	}
	return "a ConfigMap or Secret"
}

// printPods prints those of one workload. The reason that some in a row have in common stands
// behind the last of them.
func (p *plugin) printPods(to io.Writer, pods []answer.PodTruth) {
	fmt.Fprintln(to, p.paint(bold, pods[0].Workload+" in namespace "+pods[0].Namespace))
	t := &table{indent: "  ", colour: p.podColour(0), notes: map[int]string{}}
	t.add("STATE", "POD", "NODE", "SINCE")
	for i := range pods {
		pod := &pods[i]
		t.add(pod.State, pod.Pod, pod.Node, p.ago(pod))
		if i+1 == len(pods) || pods[i+1].State != pod.State || pods[i+1].Why != pod.Why {
			t.notes[i+1] = pod.Why
		}
	}
	t.print(to)
	fmt.Fprintln(to)
}

// ago is for how long the containers of a pod run, "" when they do not.
func (p *plugin) ago(pod *answer.PodTruth) string {
	if pod.Since == nil {
		return ""
	}
	return answer.Ago(p.now(), *pod.Since)
}

// tabulateTruth prints each source of each pod on one line.
func (p *plugin) tabulateTruth(to io.Writer, pods []answer.PodTruth) {
	t := &table{colour: p.podColour(5)}
	t.add("NAMESPACE", "WORKLOAD", "POD", "NODE", "SINCE", "STATE", "SOURCE", "WHY")
	for i := range pods {
		pod := &pods[i]
		for _, source := range pod.Sources {
			t.add(pod.Namespace, pod.Workload, pod.Pod, pod.Node, p.ago(pod), source.State, source.Source.String(), source.Why)
		}
	}
	t.print(to)
	fmt.Fprintln(to)
}

// podColour colours the states in a column.
func (p *plugin) podColour(of int) func(column int, text string) string {
	return func(column int, text string) string {
		if column != of {
			return text
		}
		return p.paint(map[string]string{"old": red, "mixed": red, "unknown": yellow, "current": green}[text], text)
	}
}
