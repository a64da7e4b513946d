package checksum

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"regexp"
	"slices"
)

// The format v1, which never changes (testdata/vectors-v1.json):
//
//	v1:<key id>:<selection>:<digest>    of a source that exists
//	v1:absent                           of an optional source that does not
//
//	digest    = first 16 bytes of HMAC-SHA-256(key, message), lower-case hex
//	message   = field("configstamp") field("v1") field(kind) field(namespace) field(name)
//	            number(count of selected keys)
//	            for each selected key, in order of its bytes:
//	                field(key name) 0x00                        when it is not there
//	                field(key name) 0x01 SHA-256(value)         when it is
//	key id    = first 4 bytes of HMAC-SHA-256(key, field("configstamp key id")), lower-case hex
//	selection = "all", or the first 4 bytes of SHA-256(field("keys") number(count) field(key name)...),
//	            lower-case hex
//	field(b)  = number(length of b in bytes) b
//	number(n) = n as 8 bytes, big-endian
//
// Every part has its length before it, so no two different contents make one
// message; kind, namespace and name are in it, so equal values in two sources
// give two digests; it is keyed, so that a digest that everybody may read helps
// nobody to test a guess.
const (
	version = "v1"
	// Absent is the value that stands for an optional source that does not exist.
	Absent = version + ":absent"

	selectionAll = "all"
	digestBytes  = 16
	idBytes      = 4
)

// KeySize is the length of an installation's key in bytes.
const KeySize = 32

// Key is one secret key of an installation. It prints as its id.
type Key struct {
	id string
	// begin starts a message under the key. The key is inside a function, because
	// fmt prints the unexported fields of whatever holds a Key (a Ring does)
	// without asking for its String, and follows pointers.
	begin func() hash.Hash
}

// NewKey takes exactly KeySize bytes of key material.
func NewKey(material []byte) (Key, error) {
	if len(material) != KeySize {
		return Key{}, fmt.Errorf("reading a digest key: it has %d bytes, want %d", len(material), KeySize)
	}
	secret := [KeySize]byte(material)
	key := Key{begin: func() hash.Hash { return hmac.New(sha256.New, secret[:]) }}
	mac := key.begin()
	field(mac, "configstamp key id")
	key.id = hex.EncodeToString(mac.Sum(nil)[:idBytes])
	return key, nil
}

// ID is the public name of the key, 8 hex digits; it appears in every digest.
func (k Key) ID() string { return k.id }

// String keeps a key out of logs.
func (k Key) String() string { return "key " + k.id }

// GoString keeps a key out of logs.
func (k Key) GoString() string { return k.String() }

// Ring is the set of keys of an installation. The first makes new digests; all
// of them verify. It never changes once made.
type Ring struct {
	keys []Key
}

// NewRing makes a ring; signing makes new digests, others only verify.
func NewRing(signing Key, others ...Key) *Ring {
	return &Ring{keys: append([]Key{signing}, others...)}
}

// Key finds a key by its id.
func (r *Ring) Key(id string) (Key, bool) {
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.id == id })
	if i < 0 {
		return Key{}, false
	}
	return r.keys[i], true
}

// Digest writes the value of a selection: content is what the source holds
// now, nil when it does not exist.
func (r *Ring) Digest(namespace string, s Selection, content *Content) string {
	if content == nil {
		return Absent
	}
	return r.keys[0].digest(namespace, s, content)
}

func (k Key) digest(namespace string, s Selection, content *Content) string {
	mac := k.begin()
	field(mac, "configstamp")
	field(mac, version)
	field(mac, string(s.Source.Kind))
	field(mac, namespace)
	field(mac, s.Source.Name)
	if s.All {
		number(mac, len(content.Entries))
		for i := range content.Entries {
			present(mac, &content.Entries[i])
		}
	} else {
		number(mac, len(s.Keys))
		for _, name := range s.Keys {
			if entry, ok := content.Entry(name); ok {
				present(mac, &entry)
			} else {
				field(mac, name)
				mac.Write([]byte{0})
			}
		}
	}
	return version + ":" + k.id + ":" + s.ID() + ":" + hex.EncodeToString(mac.Sum(nil)[:digestBytes])
}

func present(h hash.Hash, entry *Entry) {
	field(h, entry.Name)
	h.Write([]byte{1})
	h.Write(entry.Sum[:])
}

func field(h hash.Hash, text string) {
	number(h, len(text))
	h.Write([]byte(text))
}

func number(h hash.Hash, n int) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // a length is never negative
}

var valueFormat = regexp.MustCompile(`^v1:([0-9a-f]{8}):(all|[0-9a-f]{8}):[0-9a-f]{32}$`)

// parseValue takes a stored value apart. It accepts exactly what this package
// writes, except Absent.
func parseValue(value string) (keyID, selectionID string, ok bool) {
	parts := valueFormat.FindStringSubmatch(value)
	if parts == nil {
		return "", "", false
	}
	return parts[1], parts[2], true
}

func sortedUnique[T cmp.Ordered](items []T) []T {
	slices.Sort(items)
	return slices.Compact(items)
}
