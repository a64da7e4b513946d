package main

import (
	"fmt"
	"strings"

	"github.com/configstamp/configstamp/internal/answer"
)

// missing is the state of a source that does not exist.
const missing answer.State = "missing"

// box is a source or a workload of a graph. A state that is not done stands beside its name:
// a colour never stands alone.
type box struct {
	id, name string
	source   bool
	state    answer.State
}

// boxesOf are the boxes of a graph by namespace, which are in the order in which they come, and
// where the ends of its lines are.
func boxesOf(g *answer.Graph) (namespaces []string, boxes map[string][]box, ids map[[2]string]string) {
	boxes, ids = map[string][]box{}, map[[2]string]string{}
	add := func(namespace, name, id string, source bool, state answer.State) {
		if len(boxes[namespace]) == 0 {
			namespaces = append(namespaces, namespace)
		}
		ids[[2]string{namespace, name}] = id
		if state != answer.Done {
			name += ": " + string(state)
		}
		boxes[namespace] = append(boxes[namespace], box{id, name, source, state})
	}
	for i := range g.Sources {
		s := &g.Sources[i]
		state := s.State
		if s.Missing {
			state = missing
		}
		add(s.Namespace, s.Source.String(), fmt.Sprintf("s%d", i), true, state)
	}
	for i := range g.Workloads {
		w := &g.Workloads[i]
		add(w.Namespace, w.Workload, fmt.Sprintf("w%d", i), false, w.State)
	}
	return namespaces, boxes, ids
}

// colourOf fills a box.
func colourOf(state answer.State) string {
	switch state {
	case answer.Failed, answer.Halted:
		return "#fde3e1"
	case answer.Waiting, answer.Held, answer.Observed, answer.Suspended, missing:
		return "#fff1cc"
	case answer.Rolling:
		return "#dcebff"
	case answer.Unserved:
		return "#f3f4f6"
	case answer.Done, answer.Unknown:
	}
	return "#ffffff"
}

// dot is a graph as text for Graphviz.
func dot(g *answer.Graph) string {
	quoted := func(text string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(text) + `"`
	}
	var b strings.Builder
	b.WriteString("digraph configstamp {\n  rankdir=LR\n  node [shape=box, fontname=monospace, fontsize=10]\n")
	namespaces, boxes, ids := boxesOf(g)
	for i, namespace := range namespaces {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s\n", i, quoted("namespace "+namespace))
		for _, box := range boxes[namespace] {
			style := "filled"
			if box.source {
				style += ",rounded"
			}
			if box.state == answer.Unknown || box.state == missing {
				style += ",dashed"
			}
			fmt.Fprintf(&b, "    %s [label=%s, style=%q, fillcolor=%q]\n", box.id, quoted(box.name), style, colourOf(box.state))
		}
		b.WriteString("  }\n")
	}
	for i := range g.Uses {
		use := &g.Uses[i]
		fmt.Fprintf(&b, "  %s -> %s%s\n", ids[[2]string{use.Namespace, use.Source.String()}], ids[[2]string{use.Namespace, use.Workload}],
			lineOf(use, " [style=dotted]", " [penwidth=2]", ""))
	}
	return b.String() + "}\n"
}

// mermaid is a graph as text for Mermaid, which GitHub and GitLab draw in Markdown.
func mermaid(g *answer.Graph) string {
	quoted := func(text string) string {
		return `"` + strings.NewReplacer(`"`, "#quot;", "#", "#35;", "<", "#lt;", ">", "#gt;", "\n", " ").Replace(text) + `"`
	}
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	namespaces, boxes, ids := boxesOf(g)
	for i, namespace := range namespaces {
		fmt.Fprintf(&b, "  subgraph n%d [%s]\n", i, quoted("namespace "+namespace))
		for _, box := range boxes[namespace] {
			form := "    %s[%s]\n"
			if box.source {
				form = "    %s(%s)\n"
			}
			fmt.Fprintf(&b, form, box.id, quoted(box.name))
			if box.state != answer.Done {
				fmt.Fprintf(&b, "    style %s fill:%s\n", box.id, colourOf(box.state))
			}
		}
		b.WriteString("  end\n")
	}
	for i := range g.Uses {
		use := &g.Uses[i]
		fmt.Fprintf(&b, "  %s %s %s\n", ids[[2]string{use.Namespace, use.Source.String()}], lineOf(use, "-.->", "==>", "-->"), ids[[2]string{use.Namespace, use.Workload}])
	}
	return b.String()
}

// lineOf is how a use is drawn: one that restarts nothing, one that is why its workload is not
// done, or any other.
func lineOf(use *answer.GraphUse, uncounted, because, other string) string {
	switch {
	case !use.Counts:
		return uncounted
	case use.State != answer.Done:
		return because
	}
	return other
}
