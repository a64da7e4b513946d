package checksum

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/internal/reason"
)

// Namespace is what a Namespace says of the workloads in it. The zero Namespace is one
// of which nothing is known. What it points to never changes.
type Namespace struct {
	// OptedIn tells that its workloads are served unless they say otherwise.
	OptedIn bool
	// Ending tells that the Namespace is being deleted (metadata.deletionTimestamp):
	// nothing starts in it any more.
	Ending bool
	// Settings are its annotations that are a policy.
	Settings map[string]string
	// Findings are its settings that cannot be read.
	Findings []Finding
}

// NamespaceOf reads the metadata of a Namespace.
func NamespaceOf(meta *metav1.ObjectMeta) Namespace {
	settings := SettingsOf(meta.Annotations)
	return Namespace{
		OptedIn:  meta.Labels[InjectLabel] == InjectEnabled,
		Ending:   meta.DeletionTimestamp != nil,
		Settings: settings,
		Findings: Unreadable(OfNamespace, settings),
	}
}

// Candidate is what decides whether a workload is served, beside its Namespace.
type Candidate struct {
	// Inject is the value of its opt-in label.
	Inject string
	// Foreign is what its annotations say in the dialects of other products.
	Foreign *Foreign
	// Owned tells that its owner makes its pod template.
	Owned bool
	// Ending tells that it, or its Namespace, is being deleted. Admissions do not look
	// at that: what is updated until then is stamped.
	Ending bool
	// Excluded tells that its Namespace is never served. Admissions from there do not
	// come: the webhook configuration leaves them out.
	Excluded bool
}

// Declines reports whether a workload is not served whatever its Namespace says, and why.
func (c Candidate) Declines() (why reason.Reason, declines bool) {
	switch {
	case c.Inject == InjectDisabled, c.Ending, c.Excluded:
		return reason.OptedOut, true
	case c.Owned:
		return reason.Owned, true
	}
	return reason.NoReason, false
}

// Served reports whether a workload is served, and else why not. The workload is opted in by
// its own label, else by that of its Namespace, else by another product's annotations.
func Served(c Candidate, n Namespace) (served bool, why reason.Reason) {
	if why, declines := c.Declines(); declines {
		return false, why
	}
	if c.Inject != InjectEnabled && !n.OptedIn && !c.Foreign.OptsIn() {
		return false, reason.OptedOut
	}
	return true, reason.NoReason
}
