package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/answer"
)

// drawing is the value of the graph's -o.
type drawing string

// drawings are what a graph can be written as; the first is the default.
func drawings() []string { return []string{"dot", "mermaid", "json", "yaml"} }

// Set implements pflag.Value.
func (d *drawing) Set(text string) error {
	if !slices.Contains(drawings(), text) {
		return fmt.Errorf("want %s", strings.Join(drawings(), ", "))
	}
	*d = drawing(text)
	return nil
}

// String implements pflag.Value.
func (d *drawing) String() string { return string(*d) }

// Type implements pflag.Value.
func (d *drawing) Type() string { return "format" }

// graphFlags are those of the command graph.
type graphFlags struct {
	statusFlags
	drawing drawing
}

func (p *plugin) graphCommand() *cobra.Command {
	flags := graphFlags{drawing: "dot"}
	command := &cobra.Command{
		Use:   "graph [SOURCE | WORKLOAD]",
		Short: "Draw which workloads use which ConfigMaps and Secrets, and mark what is stale",
		Long: "Draws which workloads use which ConfigMaps and Secrets: in a namespace, in all\n" +
			"namespaces, around one source, or of one workload. It marks workloads that failed,\n" +
			"or are halted, held, waiting or rolling, and the sources that are the cause.\n\n" +
			"The output is a text for Graphviz (dot) or for Mermaid, which GitHub and GitLab draw\n" +
			"in Markdown.",
		Example: "  kubectl configstamp graph | dot -Tsvg > shop.svg\n" +
			"  kubectl configstamp graph -A -o dot\n" +
			"  kubectl configstamp graph configmap/payment-api-config -o mermaid\n" +
			"  kubectl configstamp graph deployment/web-app -o json",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: p.completeAny,
		RunE: func(command *cobra.Command, args []string) error {
			return p.graph(command.Context(), args, &flags)
		},
	}
	command.Flags().VarP(&flags.drawing, "output", "o", "how to draw: "+strings.Join(drawings(), ", "))
	if err := command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(drawings(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag stands above
	}
	command.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "draw all namespaces")
	command.Flags().StringVarP(&flags.selector, "selector", "l", "", "draw workloads with these labels, such as app=web-app")
	return command
}

// completeAny completes sources and workloads.
func (p *plugin) completeAny(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	word, _, found := strings.Cut(typed, "/")
	sources, directive := p.completeSource(command, args, typed)
	if isSource(word) {
		return sources, directive
	}
	workloads, directive := p.completeWorkload(command, args, typed)
	if found {
		return workloads, directive
	}
	return append(sources, workloads...), directive
}

// isSource tells that a word is that of a kind of source.
func isSource(word string) bool {
	_, err := sourceOf([]string{word, "x"})
	return err == nil
}

func (p *plugin) graph(ctx context.Context, args []string, flags *graphFlags) error {
	if _, err := labels.Parse(flags.selector); err != nil {
		return fmt.Errorf("--selector=%s: %w", flags.selector, err)
	}
	var around checksum.Source
	if word, _, _ := strings.Cut(words(args), "/"); isSource(word) {
		source, err := sourceOf(args)
		switch {
		case err != nil:
			return err
		case flags.all:
			return fmt.Errorf("you named a source or a workload: leave out --all-namespaces")
		}
		around, args = source, nil
	}
	cluster, settings, namespace, err := p.look(ctx, flags.all)
	if err != nil {
		return err
	}
	which, err := p.which(ctx, cluster, settings, namespace, args, &flags.statusFlags)
	if err != nil {
		return err
	}
	fleet, err := p.fleet(ctx, cluster, settings, which, nil)
	if err != nil {
		return err
	}
	graph := answer.GraphOf(fleet, p.now())
	if around.Name != "" {
		if graph = graph.Around(namespace, around); len(graph.Sources) == 0 {
			p.printGaps(cluster.Gaps())
			return fmt.Errorf("no workload in namespace %s uses %s", namespace, around)
		}
	}
	form := plain
	if flags.drawing == "json" || flags.drawing == "yaml" {
		form = format(flags.drawing)
	}
	return p.print(form, graph, cluster.Gaps(), func(to io.Writer) {
		draws := map[drawing]func(*answer.Graph) string{"dot": dot, "mermaid": mermaid}
		fmt.Fprint(to, draws[flags.drawing](&graph))
	})
}
