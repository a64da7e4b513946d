package seen

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Fleet is all that was read for an answer about some workloads.
type Fleet struct {
	Settings   *Settings
	Namespaces map[string]Namespace
	// Workloads are sorted by namespace, name and kind.
	Workloads []*Workload
	// Sources are those that were looked at, whether they exist or not.
	Sources map[rollout.SourceRef]*Source
	// Listed tells of a kind that all sources of it were read, so that one that is not
	// among Sources does not exist.
	Listed map[checksum.Kind]bool
	// Outcomes are what the webhook said of those that are served, or may be.
	Outcomes map[workload.Ref]Outcome
	// Stamped tells of which workloads some revision has stamps.
	Stamped map[types.UID]bool
	// Events are configstamp's own, newest first.
	Events []Event
}

// Serves reports whether a workload of the fleet is served, and else why not.
func (f *Fleet) Serves(w *Workload) (Standing, reason.Reason) {
	return f.Settings.Serves(w, f.Namespaces[w.Namespace])
}

// Policy is what counts for a workload of the fleet.
func (f *Fleet) Policy(w *Workload) checksum.Policy {
	return f.Settings.PolicyOf(w, f.Namespaces[w.Namespace], func(kind checksum.Kind) (names []string) {
		for at, source := range f.Sources {
			if at.Namespace == w.Namespace && at.Source.Kind == kind && source.Exists {
				names = append(names, at.Source.Name)
			}
		}
		return names
	})
}

// Selected are the sources that count for a workload of the fleet, sorted.
func (f *Fleet) Selected(w *Workload) []checksum.Source {
	var sources []checksum.Source
	for _, selection := range f.Selections(w) {
		sources = append(sources, selection.Source)
	}
	return sources
}

// Selections are what counts of each of these sources, in the same order.
func (f *Fleet) Selections(w *Workload) []checksum.Selection {
	var selections []checksum.Selection
	for _, selection := range checksum.Selections(w.References, f.Policy(w)) {
		source := f.Source(w.Namespace, selection.Source)
		if !selection.HoldOnly && (source.Policy == nil || !source.Policy.Ignore) {
			selections = append(selections, selection)
		}
	}
	return selections
}

// Source is what is known of a source; of one that was not looked at, nothing but that it
// does not exist, where all of its kind were listed.
func (f *Fleet) Source(namespace string, source checksum.Source) *Source {
	if found := f.Sources[rollout.SourceRef{Namespace: namespace, Source: source}]; found != nil {
		return found
	}
	return &Source{Namespace: namespace, Source: source, Looked: f.Listed[source.Kind]}
}

// Outcome is what the webhook said of a workload.
func (f *Fleet) Outcome(w *Workload) Outcome {
	if outcome, asked := f.Outcomes[w.Ref]; asked {
		return outcome
	}
	return UnknownBecause("it was not asked for")
}
