package checksum

import (
	"slices"
	"sync/atomic"
)

// digestCache holds the last digests that were made of one content, so that nothing
// is hashed again while the content stays. Its zero value is empty. Whoever
// loses a race for it makes a digest twice, no more.
type digestCache struct {
	digests atomic.Pointer[[]cachedDigest]
}

// digestsKept is how many are kept of one content: it is used by few
// selections, under one key or, after a rotation, two.
const digestsKept = 4

// cachedDigest is a digest, and all that it was made of beside the content.
type cachedDigest struct {
	keyID, namespace string
	source           Source
	all              bool
	except, keys     []string
	value            string
}

func (c *digestCache) find(keyID, namespace string, s *Selection) (value string, ok bool) {
	digests := c.digests.Load()
	if digests == nil {
		return "", false
	}
	for i := range *digests {
		one := &(*digests)[i]
		if one.keyID == keyID && one.namespace == namespace && one.source == s.Source &&
			one.all == s.All && slices.Equal(one.except, s.Except) && slices.Equal(one.keys, s.Keys) {
			return one.value, true
		}
	}
	return "", false
}

func (c *digestCache) add(one cachedDigest) {
	digests := []cachedDigest{one}
	if before := c.digests.Load(); before != nil {
		digests = append(digests, (*before)[:min(len(*before), digestsKept-1)]...)
	}
	c.digests.Store(&digests)
}
