package main

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// optIn is the label that opts a Namespace or a workload in.
const optIn = checksum.InjectLabel + "=" + checksum.InjectEnabled

// knownNamespace is what is known of a Namespace. The zero value is one that could not be read.
type knownNamespace struct {
	checksum.Namespace
	// Known says that it was read. Otherwise it is not known whether it is opted in.
	Known  bool
	Labels map[string]string
}

// knownNamespace returns a Namespace that was read.
func (s *clusterSettings) knownNamespace(object *unstructured.Unstructured) knownNamespace {
	return knownNamespace{Namespace: s.namespaceOf(object), Known: true, Labels: object.GetLabels()}
}

// standing is whether a workload is served.
type standing string

const (
	isServed  standing = "served"
	notServed standing = "not-served"
	// maybeServed is the standing of a workload whose Namespace could not be read.
	maybeServed standing = "unknown"
)

// Serves returns whether a workload is served, and otherwise why not.
func (s *clusterSettings) Serves(object *workload.Object, n knownNamespace) (standing, reason.Reason) {
	excluded, known := object.Namespace == s.Installation || slices.Contains(s.Excluded, object.Namespace), n.Known
	if len(s.Namespaces) > 0 {
		excluded, known = object.Namespace == s.Installation || !slices.Contains(s.Namespaces, object.Namespace), true
		n.OptedIn = !excluded
	}
	candidate := checksum.Candidate{
		Inject: object.Labels[checksum.InjectLabel], Foreign: object.Foreign(s.Dialects), Owned: object.RolledByOwner(s.Kinds),
		Ending:   object.DeletionTimestamp != nil || n.Ending,
		Excluded: excluded,
	}
	served, why := checksum.Served(candidate, n.Namespace)
	_, declines := candidate.Declines()
	switch {
	case served && (known || candidate.Inject == checksum.InjectEnabled):
		return isServed, reason.NoReason
	case !known && !declines:
		return maybeServed, reason.NoReason
	}
	return notServed, why
}

// OptsIn returns whether a Namespace is opted in as a whole.
func (s *clusterSettings) OptsIn(name string, n knownNamespace) bool {
	switch {
	case name == s.Installation || n.Ending:
		return false
	case len(s.Namespaces) > 0:
		return slices.Contains(s.Namespaces, name)
	}
	return n.OptedIn && !slices.Contains(s.Excluded, name)
}

// Hinges returns whether a workload that its labels do not opt in would be served if --namespaces listed its Namespace.
// Only the webhook can say so. With --opt-in=all there is no --namespaces.
func (s *clusterSettings) Hinges(object *workload.Object, n knownNamespace) bool {
	if standing, _ := s.Serves(object, n); standing != notServed || s.OptIn == checksum.OptInAll {
		return false
	}
	n.OptedIn, n.Known = true, true
	standing, _ := s.Serves(object, n)
	return standing == isServed
}

// notServedWords says why configstamp leaves a workload alone, for a reason that Serves returned, and which command would
// change that.
func (s *clusterSettings) notServedWords(object *workload.Object, n knownNamespace, why reason.Reason) (words, remedy string) {
	inject, labelled := object.Labels[checksum.InjectLabel]
	ref := workload.Ref{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
	label := "kubectl label " + ref.Text() + " -n " + object.Namespace + " --overwrite " + optIn
	of := n.Labels[checksum.InjectLabel]
	hinges := ""
	if s.OptIn != checksum.OptInAll {
		hinges = ", unless the flag --namespaces lists its namespace, which is not published"
	}
	switch {
	case why == reason.Owned:
		owner := object.Controller()
		return "its owner " + strings.ToLower(owner.Kind) + "/" + owner.Name + " makes its template, and is looked after instead", ""
	case object.DeletionTimestamp != nil || n.Ending:
		return "it is being deleted", ""
	case object.Namespace == s.Installation || slices.Contains(s.Excluded, object.Namespace):
		return "its namespace is never served (--excluded-namespaces)", ""
	case len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, object.Namespace):
		return "its namespace is not among those that are served (--namespaces)", ""
	case inject == checksum.InjectDisabled:
		return "its label " + checksum.InjectLabel + " is disabled", label
	case labelled:
		return checksum.InjectLabel + "=\"" + inject + "\" is not \"enabled\"" + hinges, label
	case of == checksum.InjectDisabled:
		return "the label " + checksum.InjectLabel + " of its Namespace is disabled" + hinges, label
	case of != "" && of != checksum.InjectEnabled:
		return checksum.InjectLabel + "=\"" + of + "\" on its Namespace is not \"enabled\"" + hinges, "kubectl label namespace " + object.Namespace + " --overwrite " + optIn
	}
	return "neither it nor its Namespace has the label " + optIn + hinges, label
}
