package source

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// condenser makes objects of what is received.
type condenser struct {
	names interner
	clock clock.PassiveClock
}

// condense makes an object of a ConfigMap or a Secret, and keeps nothing else of it. It returns
// false for any other kind.
func (c *condenser) condense(whole runtime.Object) (*object, bool) {
	switch whole := whole.(type) {
	case *corev1.ConfigMap:
		return c.configMap(whole), true
	case *corev1.Secret:
		if whole.Type == checksum.HelmReleaseType {
			return c.object(&whole.ObjectMeta, &checksum.Content{Unwatched: true}), true
		}
		o := c.object(&whole.ObjectMeta, checksum.ContentOfSecret(whole))
		o.immutable = ptr.Deref(whole.Immutable, false)
		return o, true
	}
	return nil, false
}

func (c *condenser) configMap(whole *corev1.ConfigMap) *object {
	content, immutable := checksum.ContentOfConfigMap(whole), ptr.Deref(whole.Immutable, false)
	if of, is := snapshot.Claims(whole.Labels, whole.Annotations, whole.Name); is {
		return c.snapshot(&whole.ObjectMeta, &snapshot.Snapshot{Of: of, Content: content, Immutable: immutable, Bytes: sizeOf(whole)})
	}
	o := c.object(&whole.ObjectMeta, content)
	o.immutable = immutable
	if _, labelled := whole.Labels[checksum.SnapshotLabel]; labelled {
		o.findings = append(o.findings, checksum.Finding{Reason: reason.NotASnapshot})
	}
	return o
}

// sizeOf returns the size of keys and values in bytes.
func sizeOf(whole *corev1.ConfigMap) (size int) {
	for name, value := range whole.Data {
		size += len(name) + len(value)
	}
	for name, value := range whole.BinaryData {
		size += len(name) + len(value)
	}
	return size
}

func (c *condenser) object(meta *metav1.ObjectMeta, content *checksum.Content) *object {
	if policy := content.Policy; policy != nil && !policy.Resume.IsZero() {
		policy.ResumeWritten(resumeWrittenAt(meta.ManagedFields, c.clock.Now()))
	}
	return &object{
		namespace: c.names.intern(meta.Namespace),
		name:      meta.Name,
		held: held{
			content:         c.shared(content),
			resourceVersion: meta.ResourceVersion,
			written:         writtenAt(meta.ManagedFields),
			created:         createdAt(meta.CreationTimestamp),
		},
	}
}

// shared is content whose names of keys are interned.
func (c *condenser) shared(content *checksum.Content) *checksum.Content {
	for i := range content.Entries {
		content.Entries[i].Name = c.names.intern(content.Entries[i].Name)
	}
	return content
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
	for _, entry := range entries {
		if entry.Time == nil || entry.Time.Unix() <= newest || !ownsData(entry.FieldsV1.GetRawBytes()) {
			continue
		}
		newest = entry.Time.Unix()
	}
	return newest
}

// resumeWrittenAt is the oldest time among the entries that own the annotation
// configstamp.dev/resume, which may be later than the truth, as the entry's manager may
// have written other fields since; now when there is none.
func resumeWrittenAt(entries []metav1.ManagedFieldsEntry, now time.Time) time.Time {
	var oldest time.Time
	for _, entry := range entries {
		if entry.Time != nil && (oldest.IsZero() || entry.Time.Time.Before(oldest)) && ownsResume(entry.FieldsV1.GetRawBytes()) {
			oldest = entry.Time.Time
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
	// The API server sorts: what is there comes first.
	if bytes.HasPrefix(fields, []byte(`{"f:data":{`)) || bytes.HasPrefix(fields, []byte(`{"f:binaryData":{`)) {
		return true
	}
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
	i.texts[text] = text
	return text
}
