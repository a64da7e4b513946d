package judge

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configstamp/configstamp/e2e/harness"
)

// back is what an undo has brought back of a source: it stays until the source changes from
// what it held then.
type back struct {
	stamp, snapshot string
	held            state
	// declined: the source held something else then. If not, all that stays is the stamp: a
	// snapshot may be lost, and today's content is the same.
	declined bool
}

// undone judges that an undo which was believed is not taken forward (P5), and that nothing
// is declined without one.
func (c *court) undone(was, now *life, event Event, unserved bool) {
	write, byUser := c.write(event)
	undo := byUser && write.Undo
	if was.object != nil && !undo && !unserved {
		c.declines(was, event)
	}
	switch {
	case undo && !unserved:
		c.undo(now, event, write)
		return
	case was.object == nil, unserved, byUser && (write.Accepts || !sameButAnnotations(was.object, now.object)):
		return
	}
	now.back = map[string]back{}
	stamps, pins := harness.Stamps(now.object), pinsOf(now.object)
	for _, source := range sortedKeys(was.back) {
		kept := was.back[source]
		if c.moved(source, kept.held, event.Version) {
			continue
		}
		if stamps[harness.StampKey(source)] != kept.stamp || kept.declined && pins[source] != kept.snapshot {
			c.violated("P5", event, "an undo has brought %s of %s back, and it goes on to %s, which nobody asked for",
				kept.snapshot, source, pins[source])
			continue
		}
		now.back[source] = kept
	}
}

// undo notes what an undo brings back, if it was believed: the stamps and pins of what was
// pinned stay as they were sent, and what differs is declined.
func (c *court) undo(now *life, event Event, write Write) {
	now.back = map[string]back{}
	sent := firstWords(textsIn(write.Carries, pinsAnnotation))
	if len(sent) == 0 {
		return
	}
	c.counts.Asked++
	stamps, pins, declined := harness.Stamps(event.Object), pinsOf(event.Object), declinedBy(event.Object)
	if !equal(sent, pins) {
		return
	}
	for source, snapshot := range sent {
		stamp := write.Carries[harness.StampKey(source)]
		if stamps[harness.StampKey(source)] != stamp {
			clear(now.back)
			return
		}
		s, reads := now.selections[source]
		if !reads {
			continue
		}
		held := c.source(source).at(event.Version)
		holding := c.holding(source, held)
		away := slices.ContainsFunc(declined[source], func(value string) bool { return holding.is(c.Keys, s, value) })
		if away || holding.is(c.Keys, s, stamp) {
			now.back[source] = back{stamp, snapshot, held, away}
		}
	}
	if len(now.back) > 0 {
		c.counts.Undone++
	}
}

// moved reports whether a source has held anything else since.
func (c *court) moved(source string, held state, until int64) bool {
	return slices.ContainsFunc(c.source(source).states, func(one state) bool {
		return one.version > held.version && one.version <= until && !equal(one.data, held.data)
	})
}

// declines judges that nothing more is declined than was.
func (c *court) declines(was *life, event Event) {
	before, now := declinedBy(was.object), declinedBy(event.Object)
	for _, source := range sortedKeys(now) {
		for _, value := range now[source] {
			if !slices.Contains(before[source], value) {
				c.violated("P5", event, "%s of %s is declined, and there was no undo", short(value), source)
			}
		}
	}
}

// sameButAnnotations reports whether templates are, but for their annotations.
func sameButAnnotations(a, b *unstructured.Unstructured) bool {
	without := func(object *unstructured.Unstructured) any {
		copied := object.DeepCopy()
		unstructured.RemoveNestedField(copied.Object, append(templatePath(object), "metadata", "annotations")...)
		found, _, _ := unstructured.NestedMap(bare(copied), templatePath(object)...)
		if metadata, ok := found["metadata"].(map[string]any); ok && len(metadata) == 0 {
			delete(found, "metadata")
		}
		return found
	}
	return equal(without(a), without(b))
}

// shortly is shorter text of what is declined, for people.
func shortly(declined map[string][]string) map[string][]string {
	for source, values := range declined {
		for i := range values {
			declined[source][i] = short(values[i])
		}
	}
	return declined
}
