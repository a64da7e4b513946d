package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
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
	// far as managedFields tell: the newest time among the entries that own some
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

// sameFor reports whether nothing changed that anybody acts on.
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

// object is what the decoder makes of a ConfigMap or Secret; a Reflector never
// sees anything bigger.
type object struct {
	namespace, name string
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

// condenser makes objects of what is decoded.
type condenser struct {
	names interner
	clock clock.PassiveClock
}

func (c *condenser) condense(obj runtime.Object) (runtime.Object, error) {
	switch source := obj.(type) {
	case *corev1.ConfigMap:
		return c.object(&source.ObjectMeta, checksum.ContentOfConfigMap(source)), nil
	case *corev1.Secret:
		return c.object(&source.ObjectMeta, checksum.ContentOfSecret(source)), nil
	default:
		return nil, fmt.Errorf("want a ConfigMap or a Secret, not a %T", obj)
	}
}

func (c *condenser) object(meta *metav1.ObjectMeta, content *checksum.Content) *object {
	for i := range content.Entries {
		content.Entries[i].Name = c.names.intern(content.Entries[i].Name)
	}
	if policy := content.Policy; policy != nil && !policy.Resume.IsZero() {
		policy.ResumeWritten(resumeWrittenAt(meta.ManagedFields, c.clock.Now()))
	}
	return &object{
		namespace: c.names.intern(meta.Namespace),
		name:      meta.Name,
		held: held{
			content:         content,
			resourceVersion: meta.ResourceVersion,
			written:         writtenAt(meta.ManagedFields),
			created:         createdAt(meta.CreationTimestamp),
		},
	}
}

func createdAt(timestamp metav1.Time) int64 {
	if timestamp.IsZero() {
		return 0
	}
	return timestamp.Unix()
}

// writtenAt is the newest time among the entries that own data, in Unix
// seconds, 0 when there is none.
func writtenAt(entries []metav1.ManagedFieldsEntry) int64 {
	var newest int64
	for i := range entries {
		if entries[i].Time == nil || entries[i].Time.Unix() <= newest || !ownsData(entries[i].FieldsV1.GetRawBytes()) {
			continue
		}
		newest = entries[i].Time.Unix()
	}
	return newest
}

// resumeWrittenAt is the oldest time among the entries that own the annotation
// configstamp.dev/resume, which may be later than the truth, as the entry's manager may
// have written other fields since; now when there is none.
func resumeWrittenAt(entries []metav1.ManagedFieldsEntry, now time.Time) time.Time {
	var oldest time.Time
	for i := range entries {
		at := entries[i].Time
		if at != nil && (oldest.IsZero() || at.Time.Before(oldest)) && ownsResume(entries[i].FieldsV1.GetRawBytes()) {
			oldest = at.Time
		}
	}
	if oldest.IsZero() {
		return now
	}
	return oldest
}

// resumeField is how a field set (FieldsV1) writes the annotation.
const resumeField = "f:configstamp.dev/resume"

func ownsResume(fields []byte) bool {
	if !bytes.Contains(fields, []byte(resumeField)) {
		return false
	}
	var top struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if json.Unmarshal(fields, &top) != nil {
		return false
	}
	return top.Metadata.Annotations[resumeField] != nil
}

// ownsData reports whether a field set (FieldsV1) has data, binaryData or
// stringData at its top.
func ownsData(fields []byte) bool {
	if !bytes.Contains(fields, []byte(`ata":`)) {
		return false
	}
	var top struct {
		Data       json.RawMessage `json:"f:data"`
		BinaryData json.RawMessage `json:"f:binaryData"`
		StringData json.RawMessage `json:"f:stringData"`
	}
	if json.Unmarshal(fields, &top) != nil {
		return false
	}
	return top.Data != nil || top.BinaryData != nil || top.StringData != nil
}

// internedNames bounds an interner; with names of at most 253 bytes it stays
// under 2 MiB.
const internedNames = 4096

// interner gives equal texts one place in memory: keys such as tls.crt and
// names of namespaces come by the thousand.
type interner struct {
	mu    sync.Mutex
	texts map[string]string
}

func (i *interner) intern(text string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.texts[text]; ok {
		return known
	}
	if i.texts == nil || len(i.texts) >= internedNames {
		i.texts = make(map[string]string)
	}
	text = strings.Clone(text)
	i.texts[text] = text
	return text
}
