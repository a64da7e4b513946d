// Package report computes the status of ConfigRollouts: what became of the newest edit of a ConfigMap or
// Secret. It is pure. Package writer, below it, does the I/O. Nothing reads a ConfigRollout to decide.
//
// Start reading at configrollout.go (the object), then facts.go (what is true now), then status.go (from
// facts, and the status before, to the status).
package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
)

// Resource is the plural of ConfigRollout, and Kind its kind.
const (
	Resource = "configrollouts"
	Kind     = "ConfigRollout"
)

// GroupVersion returns the group and version of ConfigRollout.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "configstamp.dev", Version: "v1alpha1"}
}

// ConfigRollout reports on one source of its namespace.
type ConfigRollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// Spec names the source. It never changes.
type Spec struct {
	Source Source `json:"source"`
}

// Source is a ConfigMap or Secret.
type Source struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Status is the progress of the newest edit of the source.
type Status struct {
	ObservedGeneration int64 `json:"observedGeneration"`
	Edit               `json:",inline"`
	// Workloads are the most urgent ones first, at most mostEntries entries.
	Workloads []Entry `json:"workloads,omitempty"`
	// History has earlier edits that rolled anything, newest first, at most mostHistory.
	History []Past `json:"history,omitempty"`
	// Conditions are Ready, and while they are true Reconciling or Stalled.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Edit is one edit of the source, and how far it got.
type Edit struct {
	EditedAt *metav1.Time `json:"editedAt,omitempty"` // when data was last written; nil: not known
	Manager  string       `json:"manager,omitempty"`  // the field manager that wrote it
	// Keys are the changed keys of a ConfigMap that some workload uses, sorted, at most mostKeys. They are
	// missing if the leader did not see the edit.
	Keys []string `json:"keys,omitempty"`
	// Total is how many served workloads the source concerns. Done and Failed are included.
	Total  int32 `json:"total"`
	Done   int32 `json:"done"`
	Failed int32 `json:"failed"`
}

// Past is an edit that a later edit has replaced.
type Past struct {
	Edit    `json:",inline"`
	Outcome State        `json:"outcome"` // when it ended, or the next edit came
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// Entry is the workloads that have one state, reason and message in common.
type Entry struct {
	State   State  `json:"state"`            // Failed, Held, Waiting, Rolling or Done
	Reason  string `json:"reason,omitempty"` // a code of package reason
	Message string `json:"message,omitempty"`
	// Since is when the first of them entered the state, and Until when the first of them may leave it.
	Since *metav1.Time `json:"since,omitempty"`
	Until *metav1.Time `json:"until,omitempty"`
	Count int32        `json:"count"`
	Names []string     `json:"names"` // such as deployment/web, sorted, at most mostNames
}

// State is the state of a workload, or of a whole edit. That of an edit is the reason of its condition Ready.
type State string

// The states of workloads, the most urgent first. Waiting, Rolling and Held are states of edits, too.
const (
	Failed  State = "Failed"
	Held    State = "Held"
	Waiting State = "Waiting"
	Rolling State = "Rolling"
	Done    State = "Done"
)

// The states of edits alone.
const (
	Settling State = "Settling" // workloads are yet to be reconciled since the edit
	Halted   State = "Halted"
	Complete State = "Complete"
	Unused   State = "Unused" // no workload that may roll uses the source
)

// The types of conditions, as kstatus defines them.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// Bounds of one object. The CustomResourceDefinition has the same.
const (
	mostEntries = 20
	mostNames   = 20
	mostKeys    = 20
	mostHistory = 5
	longestName = 253
	// cutTo is how much of a long name is left before its hash.
	cutTo = longestName - 1 - 2*hashBytes
	// hashBytes is how much of the hash of a long name counts.
	hashBytes = 10
	// longestMessage bounds the message of an entry, in bytes.
	longestMessage = 1024
)

// NameOf returns the name of the ConfigRollout of a source: its kind and name, cut with a hash if that is
// longer than an object's name may be.
func NameOf(source checksum.Source) string {
	name := string(source.Kind) + "-" + source.Name
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:cutTo], "-.") + "-" + hex.EncodeToString(sum[:hashBytes])
}

// SourceOf returns the source of a ConfigRollout with a name; false if the name is no such name. It takes
// a long name as it is: NameOf of the result may be another name.
func SourceOf(name string) (checksum.Source, bool) {
	kind, rest, ok := strings.Cut(name, "-")
	source := checksum.Source{Kind: checksum.Kind(kind), Name: rest}
	return source, ok && rest != "" && Reports(source)
}

// MayBeCut reports whether NameOf may have cut a name.
func MayBeCut(name string) bool { return len(name) > longestName-64 }

// Reports reports whether sources of this kind have ConfigRollouts. No right lets us read the metadata of
// others.
func Reports(source checksum.Source) bool {
	return source.Kind == checksum.ConfigMap || source.Kind == checksum.Secret
}

// KindOf returns the kind of a source as objects have it.
func KindOf(source checksum.Source) string {
	if source.Kind == checksum.Secret {
		return "Secret"
	}
	return "ConfigMap"
}

// Read reads a ConfigRollout. A status of another form counts as empty: other releases may have written it.
func Read(body []byte) (*ConfigRollout, error) {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              Spec            `json:"spec"`
		Status            json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return nil, err
	}
	object := &ConfigRollout{TypeMeta: head.TypeMeta, ObjectMeta: head.ObjectMeta, Spec: head.Spec}
	if len(head.Status) > 0 && json.Unmarshal(head.Status, &object.Status) != nil {
		object.Status = Status{}
	}
	return object, nil
}
