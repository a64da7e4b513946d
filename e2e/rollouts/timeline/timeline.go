// Package timeline tells how a fleet rolled, from what the API server's own
// watches have told of it: who was touched (touched.go), which Service had no
// ready endpoint and when (served.go), which rollouts there were and how many of
// them at once (rolls.go). It knows neither cluster nor product, and whether a
// rollout is done it works out for itself (status.go).
package timeline

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/e2e/faults/judge"
)

// Events are what was seen of one namespace or of several, in the order of the
// writes (judge.Sort).
type Events []judge.Event

// Since is the moment after which something is looked at: a resourceVersion.
type Since int64

// nameOf names an object in the whole cluster: namespace/kind/name.
func nameOf(object *unstructured.Unstructured) string {
	return object.GetNamespace() + "/" + judge.Name(object)
}

func isWorkload(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet":
		return true
	}
	return false
}

// read makes a typed object of what was seen; what cannot be read is empty.
func read[T any](object *unstructured.Unstructured) *T {
	into := new(T)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into) // the API server has read it before
	return into
}

// owners finds the workload of ReplicaSets and Pods.
type owners map[string]string // by namespace/replicaset/name

func (o owners) note(object *unstructured.Unstructured) {
	if owner := metav1.GetControllerOf(object); owner != nil && object.GetKind() == "ReplicaSet" {
		o[nameOf(object)] = object.GetNamespace() + "/" + strings.ToLower(owner.Kind) + "/" + owner.Name
	}
}

// of is the workload that an object belongs to, "" when it belongs to none, or to
// a ReplicaSet that was not seen yet: another watch tells of that.
func (o owners) of(object *unstructured.Unstructured) string {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return ""
	}
	name := object.GetNamespace() + "/" + strings.ToLower(owner.Kind) + "/" + owner.Name
	if owner.Kind == "ReplicaSet" {
		return o[name]
	}
	return name
}

func clock(at time.Time) string { return at.Format("15:04:05.000") }

// Span is for how long something was so; To is zero when it still is.
type Span struct {
	Name     string
	From, To time.Time
}

// String implements fmt.Stringer.
func (s Span) String() string {
	if s.To.IsZero() {
		return fmt.Sprintf("%s from %s on", s.Name, clock(s.From))
	}
	return fmt.Sprintf("%s from %s for %s", s.Name, clock(s.From), s.To.Sub(s.From).Round(time.Millisecond))
}
