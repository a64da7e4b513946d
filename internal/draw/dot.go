package draw

import (
	"fmt"
	"strings"

	"github.com/configstamp/configstamp/internal/answer"
)

// DOT writes a graph for Graphviz: dot -Tsvg.
func DOT(g *answer.Graph) string {
	p := pictureOf(g)
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\ndigraph configstamp {\n", summary(g))
	b.WriteString("  rankdir=LR\n  node [shape=box, style=filled, fontname=monospace, fontsize=10]\n")
	for i, of := range p.namespaces() {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s\n", i, dotText("namespace "+of.namespace))
		for _, n := range of.nodes {
			fill, line := colours(n.state)
			style := "filled"
			if n.id[0] == 's' {
				style += ",rounded"
			}
			if n.state == answer.Unknown || n.state == missing {
				style += ",dashed"
			}
			fmt.Fprintf(&b, "    %s [label=%s, tooltip=%s, style=%s, fillcolor=%s, color=%s]\n",
				n.id, dotText(n.name+mark(n.state, "")), dotText(n.title), dotText(style), dotText(fill), dotText(line))
		}
		b.WriteString("  }\n")
	}
	for _, l := range p.links {
		_, line := colours(l.state)
		attributes := "tooltip=" + dotText(l.title)
		switch {
		case !l.counts:
			attributes += `, style=dotted`
		case l.state != answer.Done:
			attributes += `, penwidth=2, color=` + dotText(line)
		}
		fmt.Fprintf(&b, "  %s -> %s [%s]\n", l.source.id, l.workload.id, attributes)
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText is a text in quotes. Graphviz knows \" and, in labels, \n, \l, \r, \N, \G.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(text) + `"`
}

// inNamespace is what stands in one namespace.
type inNamespace struct {
	namespace string
	nodes     []*node
}

// namespaces are the nodes by namespace, in the order in which they come.
func (p *picture) namespaces() []inNamespace {
	var all []inNamespace
	at := map[string]int{}
	for _, side := range [][]*node{p.sources, p.workloads} {
		for _, n := range side {
			i, known := at[n.group]
			if !known {
				i = len(all)
				at[n.group] = i
				all = append(all, inNamespace{namespace: n.group})
			}
			all[i].nodes = append(all[i].nodes, n)
		}
	}
	return all
}
