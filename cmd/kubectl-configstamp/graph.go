package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/answer"
)

func (p *plugin) graphCommand() *cobra.Command {
	flags, language := statusFlags{}, "dot"
	command := &cobra.Command{
		Use:   "graph [WORKLOAD]",
		Short: "Draw which workloads use which ConfigMaps and Secrets, and mark what is stale",
		Long: "Draws which workloads use which ConfigMaps and Secrets, and writes beside each\n" +
			"workload what is not done: failed, halted, held, waiting or rolling.\n\n" +
			"The output is a text for Graphviz (dot) or for Mermaid, which GitHub and GitLab draw\n" +
			"in Markdown.",
		Example: "  kubectl configstamp graph | dot -Tsvg > shop.svg\n" +
			"  kubectl configstamp graph -A -l app=web-app -o mermaid\n" +
			"  kubectl configstamp graph deployment/web-app",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: p.completeWorkload,
		RunE: func(command *cobra.Command, args []string) error {
			draw, known := map[string]func(io.Writer, []answer.Edge){"dot": dot, "mermaid": mermaid}[language]
			if !known {
				return fmt.Errorf("--output=%s: want dot or mermaid", language)
			}
			if _, err := labels.Parse(flags.selector); err != nil {
				return fmt.Errorf("--selector=%s: %w", flags.selector, err)
			}
			ctx := command.Context()
			cluster, settings, namespace, err := p.look(ctx, flags.all)
			if err != nil {
				return err
			}
			which, err := p.which(ctx, cluster, settings, namespace, args, &flags)
			if err != nil {
				return err
			}
			fleet, err := p.fleet(ctx, cluster, settings, which, nil)
			if err != nil {
				return err
			}
			edges := answer.Graph(fleet, p.now())
			return p.print(plain, edges, cluster.Gaps(), func(to io.Writer) { draw(to, edges) })
		},
	}
	command.Flags().StringVarP(&language, "output", "o", language, "how to draw: dot or mermaid")
	if err := command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"dot", "mermaid"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag stands above
	}
	command.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "draw all namespaces")
	command.Flags().StringVarP(&flags.selector, "selector", "l", "", "draw workloads with these labels, such as app=web-app")
	return command
}

// dot writes a text for Graphviz. A source is round; see line.
func dot(to io.Writer, edges []answer.Edge) {
	quoted := func(text string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(text) + `"`
	}
	fmt.Fprintln(to, "digraph configstamp {\n  rankdir=LR\n  node [shape=box, fontname=monospace, fontsize=10]")
	draw(edges, func(id, name string, source bool) {
		fmt.Fprintf(to, "  %s [label=%s%s]\n", id, quoted(name), map[bool]string{true: ", style=rounded"}[source])
	}, func(from, into string, e *answer.Edge) {
		fmt.Fprintf(to, "  %s -> %s%s\n", from, into, line(e, " [style=dotted]", " [penwidth=2]", ""))
	})
	fmt.Fprintln(to, "}")
}

// mermaid writes the same for Mermaid.
func mermaid(to io.Writer, edges []answer.Edge) {
	quoted := func(text string) string {
		return `"` + strings.NewReplacer(`"`, "#quot;", "#", "#35;", "<", "#lt;", ">", "#gt;", "\n", " ").Replace(text) + `"`
	}
	fmt.Fprintln(to, "flowchart LR")
	draw(edges, func(id, name string, source bool) {
		fmt.Fprintf(to, map[bool]string{true: "  %s(%s)\n", false: "  %s[%s]\n"}[source], id, quoted(name))
	}, func(from, into string, e *answer.Edge) {
		fmt.Fprintf(to, "  %s %s %s\n", from, line(e, "-.->", "==>", "-->"), into)
	})
}

// draw hands out each source and each workload once, before the first line that meets it.
func draw(edges []answer.Edge, box func(id, name string, source bool), arrow func(from, into string, e *answer.Edge)) {
	ids := map[string]string{}
	id := func(namespace, name, state string, source bool) string {
		at := namespace + "/" + name
		if ids[at] == "" {
			ids[at] = fmt.Sprintf("n%d", len(ids))
			label := at
			if state != "" {
				label += ": " + state
			}
			box(ids[at], label, source)
		}
		return ids[at]
	}
	for i := range edges {
		e := &edges[i]
		missing, state := map[bool]string{true: "missing"}[e.Missing], map[bool]string{false: string(e.State)}[e.State == answer.Done]
		arrow(id(e.Namespace, e.Source.String(), missing, true), id(e.Namespace, e.Workload, state, false), e)
	}
}

// line is how a use is drawn: one that restarts nothing, one that is the reason, or any other.
func line(e *answer.Edge, uncounted, because, other string) string {
	switch {
	case !e.Counts:
		return uncounted
	case e.Because && e.State != answer.Done:
		return because
	}
	return other
}
