package checksum

import (
	"encoding/hex"
	"strings"
)

// What snapshots carry; the strings are the public interface.
const (
	// SnapshotLabel marks a ConfigMap as a snapshot; its value is SnapshotMarked.
	SnapshotLabel = "configstamp.dev/snapshot"
	// SnapshotMarked is the value of SnapshotLabel.
	SnapshotMarked = "true"
	// SnapshotOfAnnotation says of which source it is: configmap/web-message.
	SnapshotOfAnnotation = "configstamp.dev/of"
	// SnapshotMadeAnnotation says when it was made (RFC 3339).
	SnapshotMadeAnnotation = "configstamp.dev/made"
)

// A snapshot's name is its source's, "-" and a keyed digest of all that it holds:
//
//	digest  = first 10 bytes of HMAC-SHA-256(key, message), lower-case hex
//	message = field("configstamp") field("snapshot v1") field(namespace) field(source's name)
//	          number(count of keys)
//	          for each key, in order of its bytes:
//	              field(key) 0x00 SHA-256(value)      of data
//	              field(key) 0x01 SHA-256(value)      of binaryData
//
// with the parts of the format v1 (testdata/vectors-snapshot.json). One name stands for one
// content for ever: kubelets never read an immutable object again.
const (
	snapshotVersion = "snapshot v1"
	snapshotBytes   = 10
	snapshotDigits  = 2 * snapshotBytes
	// objectNameLimit is how long an object's name may be.
	objectNameLimit = 253
	snapshotHead    = objectNameLimit - snapshotDigits - 1
)

// SnapshotName is the name of the snapshot of what a source holds.
func (r *Ring) SnapshotName(namespace string, of Source, content *Content) string {
	return r.keys[0].snapshotName(namespace, of, content)
}

// NamesSnapshot reports whether a name stands for what a source holds, under any key.
func (r *Ring) NamesSnapshot(namespace string, of Source, content *Content, name string) bool {
	if content == nil || !SnapshotFits(of, name) {
		return false
	}
	for _, key := range r.keys {
		if sameValue(name, key.snapshotName(namespace, of, content)) {
			return true
		}
	}
	return false
}

func (k Key) snapshotName(namespace string, of Source, content *Content) string {
	text := field(make([]byte, 0, usualMessage), "configstamp")
	text = field(text, snapshotVersion)
	text = field(text, namespace)
	text = field(text, of.Name)
	text = number(text, len(content.Entries))
	for i := range content.Entries {
		entry, binary := &content.Entries[i], byte(0)
		if entry.Binary {
			binary = 1
		}
		text = append(field(text, entry.Name), binary)
		text = append(text, entry.Sum[:]...)
	}
	sum := k.sum(text)
	return snapshotPrefix(of) + hex.EncodeToString(sum[:snapshotBytes])
}

// snapshotPrefix is how the names of a source's snapshots begin. A name that is cut never
// ends in what may not stand before a "-".
func snapshotPrefix(of Source) string {
	name := of.Name
	if len(name) > snapshotHead {
		name = strings.TrimRight(name[:snapshotHead], ".-")
	}
	return name + "-"
}

// SnapshotFits reports whether a snapshot of a source can have that name.
func SnapshotFits(of Source, name string) bool {
	digest, is := strings.CutPrefix(name, snapshotPrefix(of))
	return is && of.Kind == ConfigMap && of.Nameable() && isHex(digest, snapshotDigits)
}

// LooksLikeSnapshot reports whether a name ends as those of snapshots do. Only the object
// itself tells whether it is one.
func LooksLikeSnapshot(name string) bool {
	at := len(name) - snapshotDigits
	return at > 1 && name[at-1] == '-' && isHex(name[at:], snapshotDigits)
}
