package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Event is one write, as the API server's own watch tells of it.
type Event struct {
	// Version is the resourceVersion, which orders all writes to one cluster.
	Version int64
	Seen    time.Time
	// Written is no later than the write, by the API server's clock, in whole
	// seconds; zero when it is not known. What admission changes has no such time.
	Written time.Time
	Type    watch.EventType
	Object  *unstructured.Unstructured
	// Gap: it was found by a list, after an API server that began anew could not
	// tell what came before. It may stand for several writes, which are not judged.
	Gap bool
}

// Write is what a user of the run did, by the version that it came to.
type Write struct {
	What  string
	Began time.Time
	// Mark is what the object carries in the annotation Signature by this write,
	// so that it changes something, and is nobody else's. Empty: it carries none.
	Mark string
	// Unserved: no webhook may have been asked about it, so that what it carries
	// or lacks of ours is the user's doing, as the design says of a full PUT.
	Unserved bool
	// Asked: it is a person's rolling re-admission.
	Asked bool
	// Sent is the whole object that was sent, or, when Defaulted, all of it but
	// what the API server adds; Patch is a merge patch. Both are nil when what the
	// user wanted is not known (kubectl worked it out).
	Sent      *unstructured.Unstructured
	Defaulted bool
	// Merged: what was sent was merged into what was there, as by an apply.
	Merged bool
	Patch  []byte
	// Carries is what stands in the template's annotations by a user's write of
	// which nothing else is known, as an undo.
	Carries map[string]string
	// Undo: it is sent as an undo is, and takes declined content after all if it Accepts.
	Undo, Accepts bool
}

// History is what happened in one namespace.
type History struct {
	Namespace string
	// Events are those of workloads, ReplicaSets, sources and of the namespace
	// itself, in the order of their versions.
	Events []Event
	Writes map[int64]Write
	Keys   []harness.Key
	// Notes are the Kubernetes Events.
	Notes []Note
	// Removed are the snapshots that users have deleted, by uid.
	Removed map[types.UID]bool
	// Unserved tells of a span of time in which a webhook may not have answered; nil: never.
	Unserved func(from, to time.Time) bool
}

// Note is what a Kubernetes Event says about an object.
type Note struct{ About, Reason, Text string }

// Violation is an invariant that does not hold, and how that shows.
type Violation struct {
	Invariant string // I1 to I6, P1 to P5
	Object    string // deployment/web
	Version   int64
	Text      string
}

// String implements fmt.Stringer.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s at version %d: %s", v.Invariant, v.Object, v.Version, v.Text)
}

// Name is how kubectl names an object, as in deployment/web.
func Name(object *unstructured.Unstructured) string {
	return strings.ToLower(object.GetKind()) + "/" + object.GetName()
}

// VersionOf reads a resourceVersion; 0 when there is none.
func VersionOf(object *unstructured.Unstructured) int64 {
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// Sort puts events into the order in which they were written.
func Sort(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.Version, b.Version) })
}

// write is the user's write that an event tells of. A request that changed
// nothing was answered with an older version, which it did not write.
func (h *History) write(event Event) (Write, bool) {
	write, ok := h.Writes[event.Version]
	marked := write.Mark == "" || event.Object.GetAnnotations()[Signature] == write.Mark
	return write, ok && marked && !event.Seen.Before(write.Began)
}

// Signature is the annotation by which users mark their writes to workloads.
const Signature = "faults/write"

// String is a history for people: each event in a line, with what counts of it.
func (h *History) String() string {
	var text strings.Builder
	for _, event := range h.Events {
		by := ""
		if event.Gap {
			by = " (found by a list)"
		}
		if write, ok := h.write(event); ok {
			by = " by the user: " + write.What
			if write.Unserved {
				by += " (no webhook may have answered)"
			}
		}
		fmt.Fprintf(&text, "%s %8d %-8s %-28s", event.Seen.Format("15:04:05.000"), event.Version, event.Type, Name(event.Object))
		switch kind := event.Object.GetKind(); {
		case isWorkload(kind):
			stamps := harness.Stamps(event.Object)
			for _, key := range sortedKeys(stamps) {
				fmt.Fprintf(&text, " %s=%s", strings.Replace(key, ".configstamp.dev", "", 1), short(stamps[key]))
			}
			if baseline := harness.Baseline(event.Object); len(baseline) > 0 {
				text.WriteString(" baseline:")
				for _, source := range sortedKeys(baseline) {
					fmt.Fprintf(&text, " %s=%s", source, short(baseline[source]))
				}
			}
			for source, snapshot := range pinsOf(event.Object) {
				fmt.Fprintf(&text, " pin %s=%s", source, snapshot)
			}
			if declined := declinedBy(event.Object); len(declined) > 0 {
				fmt.Fprintf(&text, " declined:%v", shortly(declined))
			}
			fmt.Fprintf(&text, " generation=%d", event.Object.GetGeneration())
		case kind == "Pod":
			fmt.Fprintf(&text, " pins=%s pinned=%s", event.Object.GetAnnotations()[pinsAnnotation], event.Object.GetAnnotations()[pinnedAnnotation])
		case kind == "ConfigMap" || kind == "Secret":
			if event.Type != watch.Deleted {
				fmt.Fprintf(&text, " %s", short(h.digestNow(event.Object)))
			}
		case kind == "Namespace":
			fmt.Fprintf(&text, " %s=%s", harness.InjectLabel, event.Object.GetLabels()[harness.InjectLabel])
		}
		text.WriteString(by + "\n")
	}
	return text.String()
}

func (h *History) digestNow(object *unstructured.Unstructured) string {
	if len(h.Keys) == 0 {
		return "?"
	}
	kind, name, _ := strings.Cut(Name(object), "/")
	return harness.Digest(h.Keys[len(h.Keys)-1].Material, kind, object.GetNamespace(), name, dataOf(object), nil)
}

// short is enough of a value to tell it from others.
func short(value string) string {
	if i := strings.LastIndex(value, ":"); i >= 0 && len(value) > i+7 {
		return value[i+1 : i+7]
	}
	return value
}

func isWorkload(kind string) bool {
	return kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet" || kind == "CronJob"
}
