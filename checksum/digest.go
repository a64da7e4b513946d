package checksum

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"
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
//	selection = "all", or the first 4 bytes, lower-case hex, of
//	            SHA-256(field("keys") number(count) field(key name)...), of all keys but ignored ones
//	            SHA-256(field("all but") number(count) field(ignore pattern)...)
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
	// sum authenticates a message under the key. The key is inside a function,
	// because fmt prints the unexported fields of whatever holds a Key (a Ring
	// does) without asking for its String, and follows pointers.
	sum func(message []byte) [digestBytes]byte
}

// NewKey takes exactly KeySize bytes of key material.
func NewKey(material []byte) (Key, error) {
	if len(material) != KeySize {
		return Key{}, fmt.Errorf("reading a digest key: it has %d bytes, want %d", len(material), KeySize)
	}
	secret := [KeySize]byte(material)
	begun := sync.Pool{New: func() any { return hmac.New(sha256.New, secret[:]) }}
	key := Key{sum: func(message []byte) [digestBytes]byte {
		mac := begun.Get().(hash.Hash) //nolint:forcetypeassert // nothing else is put there
		defer begun.Put(mac)
		mac.Reset()
		mac.Write(message)
		var sum [sha256.Size]byte
		return [digestBytes]byte(mac.Sum(sum[:0]))
	}}
	id := key.sum(field(nil, "configstamp key id"))
	key.id = hex.EncodeToString(id[:idBytes])
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
	return r.keys[0].digest(namespace, s.of(content), content)
}

// digest makes a value, or finds it among those that were made of this content.
func (k Key) digest(namespace string, s Selection, content *Content) string {
	if value, ok := content.digests.find(k.id, namespace, &s); ok {
		return value
	}
	sum := k.sum(message(namespace, &s, content))
	value := version + ":" + k.id + ":" + s.ID() + ":" + hex.EncodeToString(sum[:])
	content.digests.add(cachedDigest{keyID: k.id, namespace: namespace, source: s.Source, all: s.All, except: s.Except, keys: s.Keys, value: value})
	return value
}

// usualMessage is how much room there is at once for what is digested, in bytes: enough
// for a dozen keys.
const usualMessage = 1024

func message(namespace string, s *Selection, content *Content) []byte {
	text := field(make([]byte, 0, usualMessage), "configstamp")
	text = field(text, version)
	text = field(text, string(s.Source.Kind))
	text = field(text, namespace)
	text = field(text, s.Source.Name)
	if s.All {
		count := 0
		for i := range content.Entries {
			if !matchesAny(s.Except, content.Entries[i].Name) {
				count++
			}
		}
		text = number(text, count)
		for i := range content.Entries {
			if !matchesAny(s.Except, content.Entries[i].Name) {
				text = present(text, &content.Entries[i])
			}
		}
		return text
	}
	text = number(text, len(s.Keys))
	for _, name := range s.Keys {
		if entry, ok := content.Entry(name); ok {
			text = present(text, &entry)
		} else {
			text = append(field(text, name), 0)
		}
	}
	return text
}

func present(text []byte, entry *Entry) []byte {
	text = append(field(text, entry.Name), 1)
	return append(text, entry.Sum[:]...)
}

func field(text []byte, of string) []byte { return append(number(text, len(of)), of...) }

func number(text []byte, n int) []byte {
	return binary.BigEndian.AppendUint64(text, uint64(n)) //nolint:gosec // a length is never negative
}

// parseValue takes a stored value apart. It accepts exactly what this package
// writes, except Absent.
func parseValue(value string) (keyID, selectionID string, ok bool) {
	rest, ok := strings.CutPrefix(value, version+":")
	if !ok {
		return "", "", false
	}
	keyID, rest, _ = strings.Cut(rest, ":")
	selectionID, digest, _ := strings.Cut(rest, ":")
	if !isHex(keyID, 2*idBytes) || !isHex(digest, 2*digestBytes) || (selectionID != selectionAll && !isHex(selectionID, 2*idBytes)) {
		return "", "", false
	}
	return keyID, selectionID, true
}

// Comparable reports whether two values of one source differ only if its content does:
// they were made under one key, for one selection. Absent compares with every value.
func Comparable(a, b string) bool {
	keyA, selectionA, okA := parseValue(a)
	keyB, selectionB, okB := parseValue(b)
	if a == Absent || b == Absent {
		return (okA || a == Absent) && (okB || b == Absent)
	}
	return okA && okB && keyA == keyB && selectionA == selectionB
}

// isHex reports whether text is lower-case hex of that many digits.
func isHex(text string, digits int) bool {
	if len(text) != digits {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func sortedUnique[T cmp.Ordered](items []T) []T {
	slices.Sort(items)
	return slices.Compact(items)
}
