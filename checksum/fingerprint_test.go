package checksum

import "testing"

// Fingerprints are told apart as the contents are that they are of.
func TestFingerprint(t *testing.T) {
	contents := []*Content{
		nil, {}, {Unwatched: true}, {Entries: []Entry{{Name: "a"}}}, {Entries: []Entry{{Name: "a", Binary: true}}},
		{Entries: []Entry{{Name: "a", Sum: [32]byte{1}}}}, {Entries: []Entry{{Name: "b"}}}, {Entries: []Entry{{Name: "a"}, {Name: "b"}}},
		{Entries: []Entry{{Name: "a"}}, Policy: &SourcePolicy{}},
	}
	for i, one := range contents {
		for j, other := range contents {
			if same := one.Fingerprint() == other.Fingerprint(); same != one.SameEntries(other) {
				t.Errorf("the fingerprints of %d and %d are equal: %v", i, j, same)
			}
		}
	}
}
