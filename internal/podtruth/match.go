package podtruth

import (
	"slices"
	"strings"

	"github.com/configstamp/configstamp/checksum"
)

// Match is how a value on record compares with what a source holds now.
type Match int

// The matches.
const (
	// NoStamp: there is none, or it cannot be compared: its key is lost, or it was made for
	// other keys of the source.
	NoStamp Match = iota
	// Same: it is of what the source holds now.
	Same
	// Differs: it is of other content.
	Differs
)

// Compare compares a value, such as a pod's stamp, with what the source holds now, which is
// nil when there is none. missing tells that containers cannot start with that.
func Compare(ring *checksum.Ring, namespace string, s checksum.Selection, value string, content *checksum.Content) (match Match, missing bool) {
	switch ring.Assess(namespace, s, value, value != "", content) {
	case checksum.True, checksum.Reselected:
		return Same, false
	case checksum.Missing:
		return NoStamp, true
	case checksum.Untrue:
		if ofOneSelection(value, ring.Digest(namespace, s, content)) {
			return Differs, false
		}
	case checksum.Unrecorded, checksum.Unverifiable, checksum.Unreported:
	}
	return NoStamp, false
}

// CompareTexts is Compare for who has no key: is is the value that a stamp of what the source
// holds now has, "" when that is not known.
func CompareTexts(value, is string) Match {
	switch {
	case value == "" || is == "":
		return NoStamp
	case value == is:
		return Same
	case checksum.Comparable(value, is):
		return Differs
	}
	return NoStamp
}

// ofOneSelection reports whether two values were made for the same keys, under whatever key
// of the installation. A source that was not there has no keys.
func ofOneSelection(a, b string) bool {
	return a == checksum.Absent || b == checksum.Absent || selectionIn(a) == selectionIn(b)
}

func selectionIn(value string) string {
	parts := strings.Split(value, ":") // v1, key, selection, digest
	if len(parts) != 4 {
		return value
	}
	return parts[2]
}

// Removable reports whether a key that a selection selects could have been removed without a
// trace. managedFields tell when a key was set, and nothing of one that somebody took out by
// an update, such as kubectl edit. Who selects given keys that are all there has lost none.
// has reports whether the source has a key.
func Removable(s checksum.Selection, has func(key string) bool) bool {
	return s.All || slices.ContainsFunc(s.Keys, func(key string) bool { return !has(key) })
}

// Blurred reports whether what was written last may be nothing that a selection selects: wrote
// are the keys of whoever wrote last, nil if that owns more than keys of the source.
func Blurred(s checksum.Selection, wrote map[string]bool) bool {
	if len(wrote) == 0 || len(s.Except) > 0 {
		return true
	}
	for key := range wrote {
		if !s.All && !slices.Contains(s.Keys, key) {
			return true
		}
	}
	return false
}
