package rollout

import (
	"hash/maphash"
	"slices"

	"github.com/configstamp/configstamp/checksum"
)

// groupKey is what the copies of a replicated ConfigMap have in common: their name, and
// hashes of their old and new content. A new leader does not know the old one.
type groupKey struct {
	name    string
	was, is uint64
}

// copyKeys makes the keys of copies.
type copyKeys struct {
	seed maphash.Seed
	each bool // each copy is a change of its own: there are no keys
}

// keyOf is the key of a source that goes from one content to another, the zero key when it has no
// copies. Only ConfigMaps are replicated, and what is made or deleted is not. Where the text changes, binary keys
// count by their names alone: trust-manager writes beside each copy of its certificates a
// store that is encrypted with other salt.
func (k *copyKeys) keyOf(at SourceRef, was, is *checksum.Content) groupKey {
	if k.each || at.Source.Kind != checksum.ConfigMap || is == nil || was.SameEntries(is) {
		return groupKey{}
	}
	key := groupKey{at.Source.Name, k.hash(was, true), k.hash(is, true)}
	if key.was == key.is || !slices.ContainsFunc(is.Entries, func(e checksum.Entry) bool { return !e.Binary }) {
		key.was, key.is = k.hash(was, false), k.hash(is, false)
	}
	return key
}

// hash is equal for equal contents, and different for others; of text, it is equal also for those
// that are equal but for what binary keys hold.
func (k *copyKeys) hash(content *checksum.Content, ofText bool) uint64 {
	if content == nil {
		return 0
	}
	var hash maphash.Hash
	hash.SetSeed(k.seed)
	for i := range content.Entries {
		e := &content.Entries[i]
		sum := e.Sum
		if ofText && e.Binary {
			clear(sum[:])
		}
		_, _ = hash.WriteString(e.Name)
		_, _ = hash.Write(sum[:]) // as long as any other
	}
	return hash.Sum64()
}
