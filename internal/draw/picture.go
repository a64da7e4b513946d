package draw

import (
	"cmp"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/internal/answer"
)

// node is one box of a picture.
type node struct {
	id    string // unique in the picture: s0, w17
	name  string // configmap/web-message, deployment/web
	state answer.State
	title string // what is shown to who points at it
	group string // its namespace
	label string // the name, shortened
	row   float64
	// column counts columns of parts; each has sources and workloads.
	column int
	links  []*link
}

// link is that a workload uses a source.
type link struct {
	source, workload *node
	state            answer.State
	counts           bool
	title            string
}

// picture is a graph with what it is drawn of.
type picture struct {
	sources, workloads []*node
	links              []*link
	states             []answer.State // those that occur, but for done
}

// missing is the state of a source that does not exist.
const missing answer.State = "missing"

type at struct{ namespace, name string }

func pictureOf(g *answer.Graph) *picture {
	p := &picture{}
	sources, workloads := map[at]*node{}, map[at]*node{}
	absent := false
	for i, s := range g.Sources {
		n := &node{id: "s" + number(i), name: s.Source.String(), state: s.State, group: s.Namespace}
		if s.Missing {
			n.state, absent = missing, true
		}
		n.title = n.name + " in namespace " + n.group + mark(n.state, "")
		sources[at{s.Namespace, n.name}] = n
		p.sources = append(p.sources, n)
	}
	for i, w := range g.Workloads {
		n := &node{id: "w" + number(i), name: w.Workload, state: w.State, group: w.Namespace}
		n.title = n.name + " in namespace " + n.group + mark(n.state, w.Why)
		workloads[at{w.Namespace, n.name}] = n
		p.workloads = append(p.workloads, n)
		if !slices.Contains(p.states, w.State) && w.State != answer.Done {
			p.states = append(p.states, w.State)
		}
	}
	slices.SortFunc(p.states, func(a, b answer.State) int { return cmp.Compare(urgency(a), urgency(b)) })
	if absent {
		p.states = append(p.states, missing)
	}
	for _, use := range g.Uses {
		l := &link{source: sources[at{use.Namespace, use.Source.String()}], workload: workloads[at{use.Namespace, use.Workload}], state: use.State, counts: use.Counts}
		if l.source == nil || l.workload == nil {
			continue
		}
		l.title = l.workload.name + " uses " + l.source.name + ": " + ways(use.Uses)
		if !use.Counts {
			l.title += "; a change restarts nothing"
		}
		l.source.links = append(l.source.links, l)
		l.workload.links = append(l.workload.links, l)
		p.links = append(p.links, l)
	}
	return p
}

// ways says in short how a source is used.
func ways(uses []answer.Usage) string {
	var texts []string
	for _, use := range uses {
		text := use.How
		if !use.All && len(use.Keys) > 0 {
			text += " (" + strings.Join(use.Keys, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// mark is a state as it stands behind a name, "" for done.
func mark(state answer.State, why string) string {
	switch {
	case state == answer.Done:
		return ""
	case why == "":
		return ": " + string(state)
	}
	return ": " + string(state) + ", " + why
}

// colours are the fill and the line of a state.
func colours(state answer.State) (fill, line string) {
	switch state {
	case answer.Failed, answer.Halted:
		return "#fde3e1", "#b3261e"
	case answer.Waiting, answer.Held, answer.Observed, answer.Suspended, missing:
		return "#fff1cc", "#9a6200"
	case answer.Rolling:
		return "#dcebff", "#1f5fb4"
	case answer.Unknown:
		return "#ffffff", "#6b7280"
	case answer.Unserved:
		return "#f3f4f6", "#6b7280"
	case answer.Done:
	}
	return "#ffffff", "#374151"
}

// meaning says what a state is, for the legend.
func meaning(state answer.State) string {
	switch state {
	case answer.Failed:
		return "failed: its rollout went wrong"
	case answer.Halted:
		return "halted: stale, since another one failed"
	case answer.Held:
		return "held: stale, and may not roll"
	case answer.Waiting:
		return "waiting: stale, until its turn comes"
	case answer.Observed:
		return "observed: stale, and only told of"
	case answer.Rolling:
		return "rolling"
	case answer.Suspended:
		return "suspended by its own strategy"
	case answer.Unknown:
		return "unknown: the webhook did not say"
	case answer.Unserved:
		return "not served by configstamp"
	case missing:
		return "missing: the source does not exist"
	case answer.Done:
	}
	return string(state)
}

// urgency orders states as people want to see them.
func urgency(state answer.State) int {
	order := []answer.State{answer.Failed, answer.Halted, answer.Held, answer.Waiting, answer.Rolling, answer.Suspended, answer.Observed, answer.Unknown, answer.Done, answer.Unserved}
	return slices.Index(order, state)
}
