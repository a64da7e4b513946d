package seen

import (
	"slices"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Settings are what counts in the whole cluster: what the server's flags say, as far as
// the ConfigMap configstamp-settings tells.
type Settings struct {
	// Installation is configstamp's own namespace.
	Installation string
	// Read tells that the ConfigMap was read. Else all that follows is the program's own
	// default, and may be otherwise in this cluster.
	Read bool
	// Absent tells that there is no such ConfigMap.
	Absent bool
	// Policy is what counts where neither a workload nor its Namespace says more.
	Policy checksum.Policy
	// Kinds are the workloads that the cluster serves.
	Kinds workload.Table
	// Dialects are the products whose annotations count too.
	Dialects []checksum.Dialect
	// Namespaces are the only ones that are served, all opted in; empty: all that are
	// labelled. Excluded ones are never served.
	Namespaces, Excluded []string
	// Pins tells that workloads can have their pods pinned.
	Pins bool
	// Limits are how much rolls at once. Unsettled may be a share.
	Limits rollout.Limits
}

// Namespace is what is known of a Namespace. The zero Namespace is one that could not be
// looked at.
type Namespace struct {
	checksum.Namespace
	// Known tells that it was read. Else nobody knows whether it is opted in.
	Known bool
	// Listed tells that the webhook serves workloads here that no label opts in: the flag
	// --namespaces, which is not published, lists the Namespace. Unasked tells that the
	// webhook could not be asked.
	Listed, Unasked     bool
	Labels, Annotations map[string]string
	// Paused is who wrote its annotation pause last, zero when that is not known.
	Paused Write
}

// Standing is whether a workload is served.
type Standing string

// The standings.
const (
	Served    Standing = "served"
	NotServed Standing = "not-served"
	// MaybeServed tells that its Namespace could not be looked at.
	MaybeServed Standing = "unknown"
)

// Serves reports whether a workload is served, and else why not.
func (s *Settings) Serves(w *Workload, n Namespace) (Standing, reason.Reason) {
	excluded := w.Namespace == s.Installation || slices.Contains(s.Excluded, w.Namespace)
	known := n.Known
	if len(s.Namespaces) > 0 {
		excluded, known = w.Namespace == s.Installation || !slices.Contains(s.Namespaces, w.Namespace), true
		n.OptedIn = !excluded
	}
	if n.Listed {
		n.OptedIn, known = true, true
	}
	candidate := checksum.Candidate{
		Inject: w.Object.Labels[checksum.InjectLabel], Foreign: w.Foreign, Owned: w.Owned,
		Ending:   w.Object.DeletionTimestamp != nil || n.Ending,
		Excluded: excluded,
	}
	served, why := checksum.Served(candidate, n.Namespace)
	_, declines := candidate.Declines()
	switch {
	case served && (known || w.Object.Labels[checksum.InjectLabel] == checksum.InjectEnabled):
		return Served, reason.NoReason
	case !known && !declines:
		return MaybeServed, reason.NoReason
	}
	return NotServed, why
}

// OptsIn reports whether a Namespace is opted in as a whole.
func (s *Settings) OptsIn(name string, n Namespace) bool {
	switch {
	case name == s.Installation || n.Ending:
		return false
	case len(s.Namespaces) > 0:
		return slices.Contains(s.Namespaces, name)
	}
	return (n.OptedIn || n.Listed) && !slices.Contains(s.Excluded, name)
}

// Hinges reports whether a workload is not served by the labels, and would be if --namespaces
// listed its Namespace: nobody but the webhook can say so.
func (s *Settings) Hinges(w *Workload, n Namespace) bool {
	if standing, _ := s.Serves(w, n); standing != NotServed {
		return false
	}
	n.Listed = true
	standing, _ := s.Serves(w, n)
	return standing == Served
}

// PolicyOf is what counts for a workload. existing lists the names of the sources of a
// kind in its namespace, for those that are named by patterns; nil: none is known.
func (s *Settings) PolicyOf(w *Workload, n Namespace, existing func(checksum.Kind) []string) checksum.Policy {
	if existing == nil {
		existing = func(checksum.Kind) []string { return nil }
	}
	return s.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: checksum.SettingsOf(w.Object.Annotations)},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: n.Settings},
	).Translated(w.Foreign, existing)
}
