package checksum

import "testing"

// A shadow is told from other contents as the content is that it is of.
func TestShadow(t *testing.T) {
	contents := []*Content{
		nil, {}, {Unwatched: true}, {Entries: []Entry{{Name: "a"}}}, {Entries: []Entry{{Name: "a", Binary: true}}},
		{Entries: []Entry{{Name: "a", Sum: [32]byte{1}}}}, {Entries: []Entry{{Name: "b"}}}, {Entries: []Entry{{Name: "a"}, {Name: "b"}}},
		{Entries: []Entry{{Name: "a"}}, Policy: &SourcePolicy{}},
	}
	for i, one := range contents {
		for j, other := range contents {
			want := one.SameEntries(other)
			if one.Shadow().SameEntries(other) != want || one.SameEntries(other.Shadow()) != want || one.Shadow().Shadow().SameEntries(other.Shadow()) != want {
				t.Errorf("shadows of %d and %d are told apart otherwise than these: %v", i, j, want)
			}
		}
		if shadow := one.Shadow(); shadow != nil && (len(shadow.Entries) > 0 || shadow.Policy != nil) {
			t.Errorf("the shadow of %d is as large", i)
		}
	}
}
