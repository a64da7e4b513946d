package checksum

import "crypto/subtle"

// Verdict is what is known of one reference: whether the content that its pods
// started with is still the content of the source.
type Verdict int

// The verdicts.
const (
	// True: the value on record is the digest of what the source holds now.
	True Verdict = iota
	// Untrue: the content has changed since it was recorded.
	Untrue
	// Unrecorded: nothing is on record.
	Unrecorded
	// Reselected: the value on record is true, but was written for other keys
	// than those that count now.
	Reselected
	// Unverifiable: the value on record cannot be compared: its key is lost,
	// its selection cannot be worked out, or it is not a value of ours.
	Unverifiable
	// Missing: a required source, or a required key of it, is not there, so no
	// container can start; whatever is on record stays.
	Missing
	// Unreported: the content of the source is not reported, so nothing is decided, and its record stays.
	Unreported
)

// String names a verdict for logs and tests.
func (v Verdict) String() string {
	names := [...]string{"true", "untrue", "unrecorded", "reselected", "unverifiable", "missing", "unreported"}
	if v < 0 || int(v) >= len(names) {
		return "unknown"
	}
	return names[v]
}

// Assess compares the value on record for a selection with the content of its source. recorded reports whether there
// is one.
func (r *Ring) Assess(namespace string, s Selection, record string, recorded bool, content *Content) Verdict {
	s = s.of(content)
	return r.assess(namespace, &s, record, recorded, content)
}

// assess is Assess for the result of Selection.of.
func (r *Ring) assess(namespace string, s *Selection, record string, recorded bool, content *Content) Verdict {
	if _, missing := s.Missing(content); missing {
		return Missing
	}
	return r.compare(namespace, s, record, recorded, content)
}

// compare is assess for content of which nothing is required.
func (r *Ring) compare(namespace string, s *Selection, record string, recorded bool, content *Content) Verdict {
	if s.HoldOnly {
		return True // there is nothing to be untrue
	}
	if content == nil && (s.Source.Kind.reported() || s.Source.comesByItself()) {
		return Unreported
	}
	if !recorded {
		return Unrecorded
	}
	keyID, selectionID, ok := parseValue(record)
	switch {
	case record == Absent && content == nil:
		return True
	case record == Absent:
		return Untrue
	case !ok:
		return Unverifiable
	case content == nil:
		return Untrue
	}
	key, ok := r.Key(keyID)
	if !ok {
		return Unverifiable
	}
	if sameValue(record, key.digest(namespace, *s, content)) {
		return True
	}
	written, ok := s.writtenAs(selectionID)
	switch {
	case !ok:
		return Unverifiable
	case selectionID == s.ID() || !sameValue(record, key.digest(namespace, written, content)):
		return Untrue
	default:
		return Reselected
	}
}

// holds reports whether a value is the digest of a content, under any selection.
func (r *Ring) holds(namespace string, s *Selection, value string, content *Content) bool {
	verdict := r.compare(namespace, s, value, true, content)
	return verdict == True || verdict == Reselected
}

// sameValue compares in constant time.
func sameValue(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// UnknownKey returns the id of the key that a value was made with when the
// ring does not hold it, so that the caller can look for a newer ring before
// the key is called lost.
func (r *Ring) UnknownKey(record string) (id string, unknown bool) {
	keyID, _, ok := parseValue(record)
	if !ok {
		return "", false
	}
	_, known := r.Key(keyID)
	return keyID, !known
}

// covers reports whether a change of anything that s selects would show in a
// value on record: it was written for the same keys, or for all.
func (s Selection) covers(record string) bool {
	_, id, ok := parseValue(record)
	return record == Absent || (ok && (id == selectionAll || id == s.ID()))
}

// writtenAs finds the selection under which a value was written, as far as it
// can still be worked out.
func (s Selection) writtenAs(id string) (Selection, bool) {
	if id == s.ID() {
		return s, true
	}
	if id == selectionAll {
		return Selection{Source: s.Source, All: true}, true
	}
	if everything := (Selection{Source: s.Source, All: true, Except: s.Except}); id == everything.ID() {
		return everything, true
	}
	for _, other := range s.Alternatives {
		if id == other.ID() {
			return other, true
		}
	}
	return Selection{}, false
}
