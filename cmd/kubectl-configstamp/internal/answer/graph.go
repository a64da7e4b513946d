package answer

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// Edge is that a workload uses a source of its namespace.
type Edge struct {
	Namespace string
	Source    checksum.Source
	// Missing tells that the source does not exist. It is false where that is not known.
	Missing bool
	// Workload is kind/name, State where it stands.
	Workload string
	State    State
	// Counts tells that a change of the source concerns the workload, Because that it is why it is so.
	Counts, Because bool
}

// Graph says which workloads of a fleet use which sources, and where they stand, by workload.
func Graph(f *seen.Fleet, now time.Time) (edges []Edge) {
	for _, w := range f.Workloads {
		policy, p, selected := f.Policy(w), ProgressOf(f, w, now), f.Selected(w)
		for _, source := range sourcesNamed(w, &policy) {
			edges = append(edges, Edge{
				w.Namespace, source, exists(f.Source(w.Namespace, source)) == "false", p.Workload, p.State,
				p.State != Unserved && slices.Contains(selected, source), slices.Contains(p.Because, source),
			})
		}
	}
	return edges
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
