package judge

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// there remembers what may name snapshots.
func (c *court) there(event Event) {
	kind := event.Object.GetKind()
	if kind != "Pod" && kind != "ReplicaSet" && kind != "ControllerRevision" && !isWorkload(kind) {
		return
	}
	if name := Name(event.Object); event.Type == watch.Deleted {
		delete(c.living, name)
	} else {
		c.living[name] = event.Object
	}
}

// collected judges that nothing names a snapshot that is deleted by no user (P2).
func (c *court) collected(event Event) {
	object := event.Object
	if event.Type != watch.Deleted || event.Gap || object.GetLabels()[snapshotLabel] != "true" || c.Removed[object.GetUID()] {
		return
	}
	c.counts.Collected++
	for _, name := range sortedKeys(c.living) {
		if names(c.living[name], object.GetName()) {
			c.violated("P2", event, "it is deleted by no user, and %s names it", name)
		}
	}
}

// names reports whether an object holds a text anywhere.
func names(object *unstructured.Unstructured, text string) bool {
	all, err := json.Marshal(object.Object)
	return err != nil || bytes.Contains(all, []byte(text))
}
