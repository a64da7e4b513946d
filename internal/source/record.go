package source

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// Record is what is kept of one source. Nothing a Record points to ever
// changes, so it may be read by everybody without a lock, and must not be
// written to. The zero Record stands for a source that does not exist.
type Record struct {
	// Content holds the checksum of each key, nil when the source does not
	// exist.
	Content *checksum.Content
	// ResourceVersion is metadata.resourceVersion.
	ResourceVersion string
	// Written is when data or binaryData was last written, in whole seconds, as
	// far as managedFields say: the newest time among the entries that own some
	// of it, zero when none does. It can be later than the truth, as an entry
	// has one time for all fields that its manager owns.
	Written time.Time
	// Created is metadata.creationTimestamp, in whole seconds.
	Created time.Time
}

// String keeps checksums of content, which would help to guess it, out of logs.
func (r Record) String() string {
	if r.Content == nil {
		return "absent"
	}
	return fmt.Sprintf("resourceVersion %s, %d keys", r.ResourceVersion, len(r.Content.Entries))
}

// GoString does what String does, for %#v.
func (r Record) GoString() string { return r.String() }

// MarshalLog does what String does, for structured logs.
func (r Record) MarshalLog() any { return r.String() }

// sameFor reports whether nothing changed that matters to a caller.
func (r Record) sameFor(other Record) bool {
	return r.Content.Equal(other.Content)
}

// held is a Record as it lies in memory.
type held struct {
	content         *checksum.Content
	resourceVersion string
	written         int64 // Unix seconds, 0 when unknown
	created         int64
}

func (h held) record() Record {
	r := Record{Content: h.content, ResourceVersion: h.resourceVersion}
	if h.written != 0 {
		r.Written = time.Unix(h.written, 0).UTC()
	}
	if h.created != 0 {
		r.Created = time.Unix(h.created, 0).UTC()
	}
	return r
}

// object is what is kept of a ConfigMap or Secret; a Reflector never
// sees anything bigger.
type object struct {
	namespace, name string
	findings        []checksum.Finding // beside those of its settings
	snapshot        *snapshot.Snapshot // nil: it is a source
	immutable       bool
	held
}

// GetObjectKind implements runtime.Object.
func (o *object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. What an object points to never
// changes.
func (o *object) DeepCopyObject() runtime.Object {
	same := *o
	return &same
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, for Reflectors.
func (o *object) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: o.namespace, Name: o.name, ResourceVersion: o.resourceVersion}
}

// String keeps checksums out of logs.
func (o *object) String() string { return o.namespace + "/" + o.name + ": " + o.record().String() }

// GoString does what String does, for %#v.
func (o *object) GoString() string { return o.String() }

// MarshalLog does what String does, for structured logs.
func (o *object) MarshalLog() any { return o.String() }
