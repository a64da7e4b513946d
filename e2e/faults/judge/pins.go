package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configstamp/configstamp/e2e/harness"
)

// What pins are known by.
const (
	pinsAnnotation     = "configstamp.dev/pins"
	pinnedAnnotation   = "configstamp.dev/pinned"
	declinedAnnotation = "configstamp.dev/declined"
	snapshotLabel      = "configstamp.dev/snapshot"
	ofAnnotation       = "configstamp.dev/of"
)

// admitted is how long before it was seen a Pod may have been asked about.
const admitted = 4 * time.Second

// heard is how long it may take until a webhook hears of a snapshot that a user has put in
// the place of another: the longest that its watches are held back.
const heard = 6 * time.Second

// Counts are how often a history could have shown that a promise of pins does not hold.
type Counts struct {
	// Pinned are Pods that were pinned, Left those that name snapshots and are not, in part.
	Pinned, Left int
	// Undone are undos that were believed, of those Asked for.
	Undone, Asked int
	// Collected are snapshots that the product has deleted.
	Collected int
}

// Add adds up.
func (c *Counts) Add(other Counts) {
	c.Pinned, c.Left = c.Pinned+other.Pinned, c.Left+other.Left
	c.Undone, c.Asked = c.Undone+other.Undone, c.Asked+other.Asked
	c.Collected += other.Collected
}

// String implements fmt.Stringer.
func (c Counts) String() string {
	return fmt.Sprintf("%d Pods pinned, %d not, %d of %d undos believed, %d snapshots collected", c.Pinned, c.Left, c.Undone, c.Asked, c.Collected)
}

// textsIn reads an annotation that is a JSON object of texts.
func textsIn(annotations map[string]string, name string) map[string]string {
	texts := map[string]string{}
	if text, ok := annotations[name]; ok {
		if err := json.Unmarshal([]byte(text), &texts); err != nil {
			return map[string]string{"unreadable": text}
		}
	}
	return texts
}

// firstWords are the snapshots of pins, without the uses.
func firstWords(texts map[string]string) map[string]string {
	for source, text := range texts {
		texts[source], _, _ = strings.Cut(text, " ")
	}
	return texts
}

// pinsOf are the snapshots that a workload's template names, by source.
func pinsOf(object *unstructured.Unstructured) map[string]string {
	return firstWords(textsIn(harness.TemplateAnnotations(object), pinsAnnotation))
}

// declinedBy are the digests that a workload says are declined, by source.
func declinedBy(object *unstructured.Unstructured) map[string][]string {
	declined := map[string][]string{}
	for source, text := range textsIn(object.GetAnnotations(), declinedAnnotation) {
		declined[source] = strings.Fields(text)
	}
	return declined
}

// stampsAndPins are all of ours on a template.
func stampsAndPins(object *unstructured.Unstructured) map[string]string {
	all := harness.Stamps(object)
	for source, snapshot := range pinsOf(object) {
		all[pinsAnnotation+" "+source] = snapshot
	}
	return all
}

// pod judges a Pod that was created: P1, and P4 for what it names.
func (c *court) pod(event Event) {
	annotations := event.Object.GetAnnotations()
	if event.Type != watch.Added || event.Gap || annotations[pinsAnnotation] == "" {
		return
	}
	pins, pinned := firstWords(textsIn(annotations, pinsAnnotation)), textsIn(annotations, pinnedAnnotation)
	reads := selectionsIn(event.Object, "spec")
	for _, source := range sortedKeys(pinned) {
		if pins[source] != pinned[source] {
			c.violated("P1", event, "it is pinned to %s, and its template names %q", pinned[source], pins[source])
			continue
		}
		c.reads(event, source, pinned[source], reads)
	}
	for _, source := range sortedKeys(pins) {
		if _, left := reads[source]; left {
			c.left(event, source, pins[source], reads[source])
		}
		if _, named := reads["configmap/"+pins[source]]; named && pinned[source] == "" {
			c.violated("P1", event, "it reads %s, and does not say so", pins[source])
		}
	}
	if len(pinned) > 0 {
		c.counts.Pinned++
	}
}

// reads judges what a Pod reads from a snapshot.
func (c *court) reads(event Event, source, snapshot string, reads map[string]selection) {
	reading, ok := reads["configmap/"+snapshot]
	if !ok {
		c.violated("P1", event, "it says that it is pinned to %s, and reads nothing of it", snapshot)
		return
	}
	now := c.source("configmap/" + snapshot).at(event.Version)
	if now.data == nil {
		if !c.removed(snapshot) {
			c.violated("P4", event, "it waits for %s, which does not exist", snapshot)
		}
		return
	}
	if fault := c.forged(now.object, source); fault != "" {
		if event.Seen.Sub(now.seen) > heard {
			c.violated("P1", event, "%s: %s", snapshot, fault)
		}
		return
	}
	if reading.missing(now) {
		c.violated("P4", event, "it needs a key that %s lacks", snapshot)
	}
	held := slices.ContainsFunc(c.source(source).states, func(one state) bool {
		return one.data != nil && one.version <= event.Version && equal(one.data, now.data)
	})
	if !held {
		c.violated("P1", event, "%s holds what %s has never held", snapshot, source)
	}
	all := reading // what the template takes of the source
	if other, partly := reads[source]; partly {
		all.keys = append(slices.Clone(all.keys), other.keys...)
		if reading.keys == nil || other.keys == nil {
			all.keys = nil
		}
		slices.Sort(all.keys)
	}
	stamp := event.Object.GetAnnotations()[harness.StampKey(source)]
	if !c.holding(source, now).is(c.Keys, all, stamp) {
		c.violated("P1", event, "%s is not what the template was stamped with, %s", snapshot, short(stamp))
	}
}

// holding is a source that held one thing only.
func (c *court) holding(source string, now state) *contents {
	held := c.never(source)
	held.states = []state{now}
	return held
}

// is reports whether a source holds, at the end, what a value stands for.
func (c *contents) is(keys []harness.Key, s selection, value string) bool {
	list, ok := c.under(keys, s, value)
	return ok && list[len(list)-1].digest == value
}

// forged says what is wrong with a snapshot, "" for nothing.
func (c *court) forged(object *unstructured.Unstructured, source string) string {
	immutable, _, _ := unstructured.NestedBool(object.Object, "immutable")
	switch {
	case !immutable:
		return "it is not immutable"
	case object.GetLabels()[snapshotLabel] != "true" || object.GetAnnotations()[ofAnnotation] != source:
		return "it is no snapshot of " + source
	}
	plain := func(field string) map[string][]byte {
		only := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", field: object.Object[field]}}
		return dataOf(only)
	}
	_, name, _ := strings.Cut(source, "/")
	for _, key := range c.Keys {
		if harness.SnapshotName(key.Material, c.Namespace, name, plain("data"), plain("binaryData")) == object.GetName() {
			return ""
		}
	}
	return "its name is not that of what it holds"
}

// left looks for a reason why a Pod reads a source itself though its template names a
// snapshot of it.
func (c *court) left(event Event, source, snapshot string, reads selection) {
	c.counts.Left++
	now := c.source("configmap/" + snapshot).at(event.Version)
	unserved := c.Unserved != nil && c.Unserved(event.Seen.Add(-admitted), event.Seen)
	if now.data == nil || reads.missing(now) || c.forged(now.object, source) != "" || unserved || c.noted(event.Object, "NotPinned") {
		return
	}
	c.unpinned = append(c.unpinned, Violation{"P1", Name(event.Object), event.Version,
		fmt.Sprintf("it reads %s although %s is there, and nobody said why", source, snapshot)})
}

// noted reports whether a Kubernetes Event says something of the owner of a Pod.
func (c *court) noted(pod *unstructured.Unstructured, reason string) bool {
	for _, owner := range pod.GetOwnerReferences() {
		about := strings.ToLower(owner.Kind) + "/" + owner.Name
		if slices.ContainsFunc(c.Notes, func(note Note) bool { return note.About == about && note.Reason == reason }) {
			return true
		}
	}
	return false
}

// refused judges that every Pod could be created (P4): users of runs never keep one away.
func (c *court) refused() {
	for _, note := range c.Notes {
		if note.Reason == "FailedCreate" && !strings.Contains(note.Text, "already exists") {
			c.found = append(c.found, Violation{"P4", note.About, 0, "a Pod could not be created: " + note.Text})
		}
	}
}

// removed reports whether users have deleted a snapshot of that name.
func (c *court) removed(snapshot string) bool {
	return slices.ContainsFunc(c.Events, func(event Event) bool {
		return event.Type == watch.Deleted && event.Object.GetName() == snapshot && c.Removed[event.Object.GetUID()]
	})
}

// Pins walks through a history for what pins have come to: how often that could have
// shown a fault, and Pods that are not pinned, for which only the API server can have a
// reason, if it got no answer in time.
func (h *History) Pins() (Counts, []Violation) {
	c := h.court()
	c.walk()
	return c.counts, c.unpinned
}
