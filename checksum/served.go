package checksum

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/internal/reason"
)

// Namespace is the settings of a Namespace for the workloads in it. Of the zero Namespace nothing is known. What it
// points to never changes.
type Namespace struct {
	// OptedIn reports that its workloads are served unless their own labels opt them out.
	OptedIn bool
	// Ending reports that the Namespace is being deleted (metadata.deletionTimestamp): nothing starts in it any more.
	Ending bool
	// Settings are its annotations that set a policy.
	Settings map[string]string
	// Findings are its settings that cannot be read.
	Findings []Finding
}

// OptIn decides whether a Namespace is opted in whose label is neither enabled nor disabled. The zero OptIn means
// OptInLabelled.
type OptIn string

const (
	// OptInLabelled opts no such Namespace in.
	OptInLabelled OptIn = "labelled"
	// OptInAll opts each such Namespace in.
	OptInAll OptIn = "all"
)

// ParseOptIn reads an OptIn.
func ParseOptIn(text string) (OptIn, error) {
	if o := OptIn(text); o == OptInLabelled || o == OptInAll {
		return o, nil
	}
	return "", fmt.Errorf("reading opt-in %q: want %s or %s", text, OptInLabelled, OptInAll)
}

// Excluded lists the namespaces that are never served, whatever their labels are.
func (o OptIn) Excluded() []string {
	if o == OptInAll {
		return []string{metav1.NamespaceSystem, "kube-node-lease"}
	}
	return nil
}

// NamespaceOf reads the metadata of a Namespace.
func NamespaceOf(meta *metav1.ObjectMeta, optIn OptIn) Namespace {
	settings, inject := SettingsOf(meta.Annotations), meta.Labels[InjectLabel]
	return Namespace{
		OptedIn:  inject == InjectEnabled || optIn == OptInAll && inject != InjectDisabled,
		Ending:   meta.DeletionTimestamp != nil,
		Settings: settings,
		Findings: Unreadable(OfNamespace, settings),
	}
}

// Candidate is what decides whether a workload is served, beside its Namespace.
type Candidate struct {
	// Inject is the value of its opt-in label.
	Inject string
	// Foreign is the meaning of its annotations in the dialects of other products.
	Foreign *Foreign
	// Owned reports that its owner makes its pod template.
	Owned bool
	// Ending reports that the workload or its Namespace is being deleted. Admissions do not set it: workloads that are
	// updated until then are stamped.
	Ending bool
	// Excluded reports that its Namespace is never served. There are no admissions from there: the webhook
	// configuration leaves them out.
	Excluded bool
}

// Declines reports whether a workload is not served whatever the settings of its Namespace, and why.
func (c Candidate) Declines() (why reason.Reason, declines bool) {
	switch {
	case c.Inject == InjectDisabled, c.Ending, c.Excluded:
		return reason.OptedOut, true
	case c.Owned:
		return reason.Owned, true
	}
	return reason.NoReason, false
}

// Served reports whether a workload is served, otherwise why not. A workload is opted in by its own label, by its
// Namespace, or by the annotations of another product.
func Served(c Candidate, n Namespace) (served bool, why reason.Reason) {
	if why, declines := c.Declines(); declines {
		return false, why
	}
	if c.Inject != InjectEnabled && !n.OptedIn && !c.Foreign.OptsIn() {
		return false, reason.OptedOut
	}
	return true, reason.NoReason
}
