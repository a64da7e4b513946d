package rollout

import (
	"crypto/sha256"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// group is a replicated ConfigMap going from one content to another in several
// namespaces. It rolls in steps over all of them.
type group struct {
	key groupKey
	// last is when a copy was last written.
	last time.Time
	// changes are those of its copies that are not over, stopped those of them that
	// have a failure of their own.
	changes map[*change]struct{}
	stopped map[*change]struct{}
	tally
	unseen, proven, settled, lacked int
	turn                            time.Time // when it last had a turn
	left                            time.Time // when a copy went on to another content, and the others waited
	proved                          time.Time // when a workload was last found healthy with it
}

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

// keyOf is the key of a source that goes from one content to another. Only ConfigMaps
// are replicated, and what is made or deleted is not. Where the text changes, binary keys
// count by their names alone: trust-manager writes beside each copy of its certificates a
// store that is encrypted with other salt.
func (k *copyKeys) keyOf(at SourceRef, was, is *checksum.Content) (key groupKey, replicable bool) {
	if k.each || at.Source.Kind != checksum.ConfigMap || is == nil || was.SameEntries(is) {
		return groupKey{}, false
	}
	key = groupKey{at.Source.Name, k.hashOfText(was), k.hashOfText(is)}
	if key.was == key.is || !hasText(is) {
		key.was, key.is = k.hash(was), k.hash(is)
	}
	return key, true
}

// hash is equal for equal contents, and different for others.
func (k *copyKeys) hash(content *checksum.Content) uint64 {
	return k.hashOf(content, func(checksum.Entry) bool { return true })
}

// hashOfText is hash of contents that are equal but for what binary keys hold.
func (k *copyKeys) hashOfText(content *checksum.Content) uint64 {
	return k.hashOf(content, func(e checksum.Entry) bool { return !e.Binary })
}

// hashOf is that of all names, and of the values that count.
func (k *copyKeys) hashOf(content *checksum.Content, counts func(checksum.Entry) bool) uint64 {
	if content == nil {
		return 0
	}
	var hash maphash.Hash
	hash.SetSeed(k.seed)
	for i := range content.Entries {
		e, sum := content.Entries[i], [sha256.Size]byte{}
		if counts(e) {
			sum = e.Sum
		}
		_, _ = hash.WriteString(e.Name)
		_, _ = hash.Write(sum[:]) // as long as any other
	}
	return hash.Sum64()
}

func hasText(content *checksum.Content) bool {
	return slices.ContainsFunc(content.Entries, func(e checksum.Entry) bool { return !e.Binary })
}

// groupOf is the group of copies with a key, one of which was written at some time.
// Copies join while the others are under way, or soon after.
func (p *Plan) groupOf(key groupKey, written time.Time) *group {
	g, found := p.groups[key], groupKey{name: key.name, is: key.is}
	if g == nil && p.groups[found] != nil && p.groups[found].key.was == 0 {
		g = p.groups[found] // nobody knows what they held before
	}
	apart := time.Duration(0)
	if g != nil {
		apart = written.Sub(g.last).Abs()
	}
	if g == nil || apart > replicatedWithin && len(g.changes) == 0 {
		p.sweepGroups(written)
		g = &group{key: key, changes: map[*change]struct{}{}, stopped: map[*change]struct{}{}}
		p.groups[key], p.groups[found] = g, g // copies that are found later join
	}
	if written.After(g.last) {
		g.last = written
	}
	return g
}

// sweepGroups forgets groups that are over, now and then.
func (p *Plan) sweepGroups(now time.Time) {
	if len(p.groups) < p.manyGroups {
		return
	}
	maps.DeleteFunc(p.groups, func(_ groupKey, g *group) bool { return len(g.changes) == 0 && now.Sub(g.last) > replicatedWithin })
	p.manyGroups = max(many, 2*len(p.groups))
}

// many is from how many on things that are over are forgotten: when they have doubled.
const many = 1024

// attach makes a new change one of a group.
func (g *group) attach(c *change, at SourceRef) {
	c.groups[at], c.group = g, g
	g.changes[c] = struct{}{}
	g.unseen += c.left
}

// detach takes the change of a source out of its group.
func (c *change) detach(at SourceRef) {
	g := c.groups[at]
	if g == nil {
		return
	}
	delete(c.groups, at)
	g.add(c.tally, -1)
	delete(g.changes, c)
	delete(g.stopped, c)
}

// leave is detach of a source that has changed again. The other copies are about to
// follow: until then nothing of the group begins; and not again soon, as one copy may
// leave and join all the time.
func (c *change) leave(at SourceRef, now time.Time) {
	if g := c.groups[at]; g != nil && now.Sub(g.left) >= 10*replicatedWithin {
		g.left = now
	}
	c.detach(at)
}

// trials is how many workloads may try a change at once, for what has failed in other
// namespaces; -1: as many as the steps allow. After one failure one workload tries.
// After two all stop, and when the foreign halt ends one more tries, then two, then
// four, while each time those fail as well. until is when the foreign halt ends.
func (p *Plan) trials(g *group, c *change, at SourceRef, now time.Time) (trials int, until time.Time) {
	failed, last := 0, time.Time{}
	for other := range g.stopped {
		began := other.failedSince(g.proved)
		if other == c || began.IsZero() {
			continue
		}
		failed++
		if began.After(last) {
			last = began
		}
	}
	switch {
	case failed == 0 || p.resumed(at, last):
		return -1, time.Time{}
	case failed == 1:
		return 1, time.Time{}
	}
	if until = last.Add(p.limits.ForeignHalt); until.After(now) {
		return 0, until
	}
	return min(mostTrials, 1<<(bits.Len(uint(failed-1))-1)), until // #nosec G115 -- it is positive
}

// failedSince is when the first rollout after a time began that has failed with a change;
// zero: none has. Who fails again and again makes no foreign halt longer.
func (c *change) failedSince(after time.Time) (first time.Time) {
	for _, began := range c.failures {
		if began.After(after) && (first.IsZero() || began.Before(first)) {
			first = began
		}
	}
	return first
}

// mostTrials is how many try at once after the third foreign halt, and after each later
// one.
const mostTrials = 4
