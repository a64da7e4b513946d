package answer

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/seen"
)

// Graph is which workloads use which sources.
type Graph struct {
	Workloads []GraphWorkload `json:"workloads"`
	Sources   []GraphSource   `json:"sources"`
	Uses      []GraphUse      `json:"uses"`
	// Without counts workloads that use no source; they are not among Workloads.
	Without int `json:"without"`
}

// GraphWorkload is a workload that uses a source.
type GraphWorkload struct {
	Namespace string `json:"namespace"`
	// Workload is kind/name.
	Workload string `json:"workload"`
	State    State  `json:"state"`
	Why      string `json:"why,omitempty"`
}

// GraphSource is a source that a workload uses.
type GraphSource struct {
	Namespace string          `json:"namespace"`
	Source    checksum.Source `json:"source"`
	// State is the most urgent one in which a user is because of it, Halted when that one
	// has failed, and Done when no user is in any because of it.
	State State `json:"state"`
	// Missing tells that it does not exist. It is false where that is not known.
	Missing bool `json:"missing,omitempty"`
}

// GraphUse is that a workload uses a source of its namespace.
type GraphUse struct {
	Namespace string          `json:"namespace"`
	Source    checksum.Source `json:"source"`
	Workload  string          `json:"workload"`
	// Uses are the ways in which it does.
	Uses []Usage `json:"uses"`
	// Counts tells that a change of the source concerns the workload.
	Counts bool `json:"counts"`
	// State is the workload's where the source is why it is in it, else Done.
	State State `json:"state"`
}

// GraphOf says which workloads of a fleet use which sources, and where they stand.
func GraphOf(f *seen.Fleet, now time.Time) Graph {
	g := Graph{Workloads: []GraphWorkload{}, Sources: []GraphSource{}, Uses: []GraphUse{}}
	found := map[rollout.SourceRef]int{}
	for _, w := range f.Workloads {
		policy := f.Policy(w)
		sources := sourcesNamed(w, &policy)
		if len(sources) == 0 {
			g.Without++
			continue
		}
		p := ProgressOf(f, w, now)
		g.Workloads = append(g.Workloads, GraphWorkload{w.Namespace, p.Workload, p.State, p.Why})
		served := p.State != Unserved
		selected := f.Selected(w)
		for _, source := range sources {
			use := GraphUse{w.Namespace, source, p.Workload, usesOf(w, &policy, source), served && slices.Contains(selected, source), Done}
			if slices.Contains(p.Because, source) {
				use.State = p.State
			}
			g.Uses = append(g.Uses, use)
			at := rollout.SourceRef{Namespace: w.Namespace, Source: source}
			i, known := found[at]
			if !known {
				i = len(g.Sources)
				found[at] = i
				g.Sources = append(g.Sources, GraphSource{w.Namespace, source, Done, exists(f.Source(w.Namespace, source)) == "false"})
			}
			state := use.State
			if state == Failed {
				state = Halted // its change is
			}
			if byUrgency(state, g.Sources[i].State) < 0 {
				g.Sources[i].State = state
			}
		}
	}
	slices.SortStableFunc(g.Sources, func(a, b GraphSource) int {
		return rollout.SourceRef{Namespace: a.Namespace, Source: a.Source}.Compare(rollout.SourceRef{Namespace: b.Namespace, Source: b.Source})
	})
	return g
}

// sourcesNamed are all sources that a workload uses in any way, each once, sorted.
func sourcesNamed(w *seen.Workload, policy *checksum.Policy) []checksum.Source {
	sources := slices.Clone(policy.Also)
	for _, r := range w.References {
		if r.Source.Nameable() {
			sources = append(sources, r.Source)
		}
	}
	for _, s := range checksum.Selections(w.References, *policy) { // those that another product's annotation names
		sources = append(sources, s.Source)
	}
	slices.SortFunc(sources, checksum.Source.Compare)
	sources = slices.Compact(sources)
	return slices.DeleteFunc(sources, func(s checksum.Source) bool {
		return slices.Contains(policy.Ignored, s) && !slices.Contains(policy.Also, s)
	})
}

// Around is the part of a graph with one source: its users, and nothing else of theirs.
func (g *Graph) Around(namespace string, source checksum.Source) Graph {
	part := Graph{Workloads: []GraphWorkload{}, Sources: []GraphSource{}, Uses: []GraphUse{}}
	users := map[string]bool{}
	for _, use := range g.Uses {
		if use.Namespace == namespace && use.Source == source {
			part.Uses = append(part.Uses, use)
			users[use.Workload] = true
		}
	}
	for _, w := range g.Workloads {
		if w.Namespace == namespace && users[w.Workload] {
			part.Workloads = append(part.Workloads, w)
		}
	}
	for _, s := range g.Sources {
		if s.Namespace == namespace && s.Source == source {
			part.Sources = append(part.Sources, s)
		}
	}
	return part
}
