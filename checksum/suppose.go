package checksum

import (
	"bytes"
	"slices"

	"github.com/configstamp/configstamp/internal/reason"
)

// Who foresees what an edit will do may hold neither the digest key nor any content. Then
// all is supposed: a ring of its own, contents of which only the names of the keys are
// known, and records that are what they would be in such a world.

// Suppose is what a value on record would be, had this ring made it of a content, for the
// same selection as it was made for. A value whose selection cannot be worked out stays as
// it is: it cannot be compared in any world.
func (r *Ring) Suppose(namespace string, s Selection, record string, content *Content) string {
	_, id, ok := parseValue(record)
	if !ok || content == nil {
		return record
	}
	written, known := s.of(content).writtenAs(id)
	if !known {
		return record
	}
	return r.keys[0].digest(namespace, written, content)
}

// Differs reports whether a selection sees another content when its source goes from one
// to the other; nil is a source that does not exist. What the source says of itself after
// that counts: what it ignores then does not differ.
func (s Selection) Differs(was, is *Content) bool {
	if is == nil {
		s = s.of(was)
	} else {
		s = s.of(is)
	}
	if s.HoldOnly || was == nil || is == nil {
		return !s.HoldOnly && was != is
	}
	return !bytes.Equal(message("", &s, was), message("", &s, is))
}

// LeavesOut returns why an edit of a source changes nothing for a workload with some references: what would have to be
// set otherwise for it to change something.
func (p Policy) LeavesOut(references []Reference, source Source, was, is *Content) reason.Reason {
	was, is = bare(was), bare(is)
	sees := func(policy Policy) bool {
		return slices.ContainsFunc(Selections(references, policy), func(s Selection) bool { return s.Source == source && s.Differs(was, is) })
	}
	if sees(p) {
		return reason.SourceLeftOut // by the settings of the source
	}
	everyUse := []Use{Startup, Live, Node}
	if p.Uses = everyUse; sees(p) {
		return reason.UseLeftOut
	}
	unset := DefaultPolicy()
	unset.Uses, unset.SecretProviderClasses = everyUse, true
	if sees(unset) {
		return reason.SourceLeftOut
	}
	if !slices.ContainsFunc(references, func(r Reference) bool { return r.Source == source && r.Use != Unused }) {
		return reason.NotMounted
	}
	return reason.KeyNotUsed
}

// bare returns a content without the settings of its source.
func bare(content *Content) *Content {
	if content == nil || content.Policy == nil {
		return content
	}
	return &Content{Entries: content.Entries}
}
