package source

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot"
	"github.com/configstamp/configstamp/internal/workload/wire"
)

// condenser makes objects of what is received.
type condenser struct {
	names interner
	clock clock.PassiveClock
}

// condense makes an object of the message of a ConfigMap or a Secret. It hashes values
// where they lie, and copies what is kept and nothing else.
func (c *condenser) condense(kind string, message []byte) (runtime.Object, error) {
	if kind != "ConfigMap" && kind != "Secret" {
		return nil, fmt.Errorf("want a ConfigMap or a Secret, not a %q", kind)
	}
	binaryData, frozen := -1, 5 // a Secret has its type at 3
	if kind == "ConfigMap" {
		binaryData, frozen = 3, 4
	}
	size := 0
	_ = wire.Each(message, func(number int, _ []byte) error {
		if number == 2 || number == binaryData {
			size++
		}
		return nil
	})
	var meta metadata
	entries := make([]checksum.Entry, 0, size)
	immutable, unwatched, length := false, false, 0
	err := wire.EachValue(message, func(number int, field wire.Value) error {
		switch {
		case field.IsNumber:
			immutable = immutable || number == frozen && field.Number != 0
		case number == 1:
			return meta.read(field.Bytes)
		case number == 3 && kind == "Secret":
			unwatched = string(field.Bytes) == checksum.HelmReleaseType
		case number == 2 || number == binaryData:
			name, value, err := wire.Entry(field.Bytes)
			entries = append(entries, checksum.Entry{Name: c.names.intern(name), Sum: sha256.Sum256(value), Binary: number == binaryData})
			length += len(name) + len(value)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading a %s: %w", kind, err)
	}
	if unwatched {
		return c.object(&meta, &checksum.Content{Unwatched: true}), nil
	}
	content := &checksum.Content{Entries: lastOfEach(entries), Policy: checksum.SourcePolicyOf(meta.annotations)}
	if kind == "ConfigMap" {
		if of, is := snapshot.Claims(meta.labels, meta.annotations, string(meta.name)); is {
			return c.snapshot(&meta, &snapshot.Snapshot{Of: of, Content: content, Immutable: immutable, Bytes: length}), nil
		}
	}
	o := c.object(&meta, content)
	o.immutable = immutable
	if _, labelled := meta.labels[checksum.SnapshotLabel]; labelled && kind == "ConfigMap" {
		o.findings = append(o.findings, checksum.Finding{Reason: reason.NotASnapshot})
	}
	return o, nil
}

// lastOfEach sorts entries; of those of one name in one map the last counts.
func lastOfEach(entries []checksum.Entry) []checksum.Entry {
	slices.SortStableFunc(entries, func(a, b checksum.Entry) int {
		if order := cmp.Compare(a.Name, b.Name); order != 0 || a.Binary == b.Binary {
			return order
		}
		if a.Binary {
			return 1
		}
		return -1
	})
	kept := entries[:0]
	for i, entry := range entries {
		if i+1 == len(entries) || entries[i+1].Name != entry.Name || entries[i+1].Binary != entry.Binary {
			kept = append(kept, entry)
		}
	}
	return kept
}

// metadata is what is read of an object's metadata.
type metadata struct {
	namespace, name, resourceVersion, uid []byte
	created                               metav1.Time
	labels, annotations                   map[string]string // those that checksum reads
	owners                                []owner
}

// owner is what is read of an entry of managedFields.
type owner struct {
	at     *metav1.Time // nil when the entry does not say
	fields []byte       // FieldsV1
}

// read reads an ObjectMeta, or goes on with one.
func (m *metadata) read(message []byte) error {
	return wire.Each(message, func(number int, field []byte) error {
		switch number {
		case 1:
			m.name = field
		case 3:
			m.namespace = field
		case 5:
			m.uid = field
		case 6:
			m.resourceVersion = field
		case 8:
			return m.created.Unmarshal(field)
		case 11:
			return gather(&m.labels, field)
		case 12:
			return gather(&m.annotations, field)
		case 17:
			owner, err := ownerOf(field)
			m.owners = append(m.owners, owner)
			return err
		}
		return nil
	})
}

// gather adds a label or an annotation, if checksum reads it.
func gather(into *map[string]string, entry []byte) error {
	key, value, err := wire.Entry(entry)
	if err != nil || !checksum.IsOfSource(key) {
		return err
	}
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[string(key)] = string(value)
	return nil
}

// ownerOf reads a ManagedFieldsEntry.
func ownerOf(message []byte) (owner, error) {
	var o owner
	err := wire.Each(message, func(number int, field []byte) error {
		switch number {
		case 4:
			if o.at == nil {
				o.at = &metav1.Time{}
			}
			return o.at.Unmarshal(field)
		case 7:
			return wire.Each(field, func(number int, field []byte) error {
				if number == 1 {
					o.fields = field
				}
				return nil
			})
		}
		return nil
	})
	return o, err
}

func (c *condenser) object(meta *metadata, content *checksum.Content) *object {
	if policy := content.Policy; policy != nil && !policy.Resume.IsZero() {
		policy.ResumeWritten(resumeWrittenAt(meta.owners, c.clock.Now()))
	}
	return &object{
		namespace: c.names.intern(meta.namespace),
		name:      string(meta.name),
		held: held{
			content:         content,
			resourceVersion: string(meta.resourceVersion),
			written:         writtenAt(meta.owners),
			created:         createdAt(meta.created),
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
func writtenAt(entries []owner) int64 {
	var newest int64
	for _, entry := range entries {
		if entry.at == nil || entry.at.Unix() <= newest || !ownsData(entry.fields) {
			continue
		}
		newest = entry.at.Unix()
	}
	return newest
}

// resumeWrittenAt is the oldest time among the entries that own the annotation
// configstamp.dev/resume, which may be later than the truth, as the entry's manager may
// have written other fields since; now when there is none.
func resumeWrittenAt(entries []owner, now time.Time) time.Time {
	var oldest time.Time
	for _, entry := range entries {
		if entry.at != nil && (oldest.IsZero() || entry.at.Time.Before(oldest)) && ownsResume(entry.fields) {
			oldest = entry.at.Time
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

func (i *interner) intern(text []byte) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.texts[string(text)]; ok {
		return known
	}
	if i.texts == nil || len(i.texts) >= internedNames {
		i.texts = make(map[string]string)
	}
	kept := string(text)
	i.texts[kept] = kept
	return kept
}
