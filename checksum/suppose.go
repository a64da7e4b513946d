package checksum

import "bytes"

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
