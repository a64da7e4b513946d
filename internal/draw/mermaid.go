package draw

import (
	"fmt"
	"strings"

	"github.com/configstamp/configstamp/internal/answer"
)

// Mermaid writes a graph for Mermaid, which GitHub and GitLab draw in Markdown.
func Mermaid(g *answer.Graph) string {
	p := pictureOf(g)
	var b strings.Builder
	fmt.Fprintf(&b, "%%%% %s\nflowchart LR\n", summary(g))
	for i, of := range p.namespaces() {
		fmt.Fprintf(&b, "  subgraph n%d [%s]\n", i, mermaidText("namespace "+of.namespace))
		for _, n := range of.nodes {
			open, end := "[", "]"
			if n.id[0] == 's' {
				open, end = "(", ")"
			}
			fmt.Fprintf(&b, "    %s%s%s%s%s\n", n.id, open, mermaidText(n.name+mark(n.state, "")), end, class(n.state))
		}
		b.WriteString("  end\n")
	}
	for _, l := range p.links {
		arrow := "-->"
		switch {
		case !l.counts:
			arrow = "-.->"
		case l.state != answer.Done:
			arrow = "==>"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", l.source.id, arrow, l.workload.id)
	}
	for _, state := range p.states {
		fill, line := colours(state)
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:%s\n", className(state), fill, line)
	}
	return b.String()
}

// mermaidText is a text in quotes; what means something to Mermaid is written as a number.
func mermaidText(text string) string {
	return `"` + strings.NewReplacer(`"`, "#quot;", "#", "#35;", "<", "#lt;", ">", "#gt;", "\n", " ").Replace(text) + `"`
}

func class(state answer.State) string {
	if state == answer.Done {
		return ""
	}
	return ":::" + className(state)
}

func className(state answer.State) string { return strings.ReplaceAll(string(state), " ", "-") }
