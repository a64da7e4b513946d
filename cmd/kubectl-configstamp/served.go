package main

import (
	"fmt"

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
	Known bool
}

// standing is whether a workload is served.
type standing string

const (
	isServed  standing = "served"
	notServed standing = "not-served"
	// maybeServed is the standing of a workload whose Namespace could not be read, or which only the flag --namespaces
	// can opt in: the chart does not publish that list. With --opt-in=all there is none.
	maybeServed standing = "unknown"
)

// Serves returns whether a workload is served, and otherwise why not.
func (s *clusterSettings) Serves(object *workload.Object, n knownNamespace) (standing, reason.Reason) {
	excluded, listed := s.excludes(object.Namespace), s.OptIn != checksum.OptInAll
	if len(s.Namespaces) > 0 {
		n.OptedIn, n.Known, listed = !excluded, true, false
	}
	candidate := checksum.Candidate{
		Inject: object.Labels[checksum.InjectLabel], Foreign: object.Foreign(s.Dialects), Owned: object.RolledByOwner(s.Kinds),
		Ending:   object.DeletionTimestamp != nil || n.Ending,
		Excluded: excluded,
	}
	served, why := checksum.Served(candidate, n.Namespace)
	_, declines := candidate.Declines()
	switch {
	case served && (n.Known || candidate.Inject == checksum.InjectEnabled):
		return isServed, reason.NoReason
	case !declines && (listed || !n.Known):
		return maybeServed, why
	}
	return notServed, why
}

// excludes returns whether nothing is served in a namespace, whatever its labels are.
func (s *clusterSettings) excludes(namespace string) bool {
	return !s.MayServe(s.Installation, namespace)
}

// OptsIn returns whether a Namespace is opted in as a whole.
func (s *clusterSettings) OptsIn(name string, n knownNamespace) bool {
	return !n.Ending && !s.excludes(name) && (n.OptedIn || len(s.Namespaces) > 0)
}

// notServedWords says why configstamp leaves a workload alone, for a reason that Serves returned, and which command would
// change that.
func (s *clusterSettings) notServedWords(object *workload.Object, why reason.Reason) (words, remedy string) {
	ref := workload.Ref{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
	inject, labelled := object.Labels[checksum.InjectLabel]
	switch {
	case why == reason.Owned:
		return why.Sentence(reason.Values{}), ""
	case object.DeletionTimestamp != nil:
		return "it is being deleted", ""
	case s.excludes(object.Namespace):
		return "its namespace is never served (--namespaces, --excluded-namespaces)", ""
	case labelled:
		words = fmt.Sprintf("its label %s is %q", checksum.InjectLabel, inject)
	case s.OptIn == checksum.OptInAll:
		words = "the label " + checksum.InjectLabel + " of its Namespace is disabled"
	default:
		words = "neither it nor its Namespace has the label " + optIn
	}
	if s.OptIn != checksum.OptInAll && inject != checksum.InjectDisabled {
		words += ", unless the flag --namespaces lists its namespace, which is not published"
	}
	return words, "kubectl label " + ref.Text() + " -n " + object.Namespace + " --overwrite " + optIn
}
