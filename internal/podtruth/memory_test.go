package podtruth

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// The time of an edit is what managedFields say, if it is of that edit.
func TestMemory(t *testing.T) {
	for sentence, c := range map[string]struct {
		now, written int
		want         bool
	}{
		"an edit":                            {100, 99, true},
		"one that is told of late":           {100, 86, true},
		"a time that is too old for it":      {100, 85, false},
		"a key was removed: nothing is told": {100, 50, false},
		"a key was removed soon after":       {52, 50, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			m := Begin(at(60), at(50)).Changed(at(c.now), at(c.written))
			if m.Written.IsZero() == c.want || c.want && !m.Written.Equal(at(c.written)) || !m.Still.Equal(at(c.now)) || !m.Since.Equal(at(60)) {
				t.Errorf("it remembers %+v", m)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	key, err := checksum.NewKey([]byte(strings.Repeat("k", checksum.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	ring := checksum.NewRing(key)
	content := func(value string) *checksum.Content {
		return checksum.ContentOfConfigMap(&corev1.ConfigMap{Data: map[string]string{"a": value, "b": "1"}})
	}
	source := checksum.Source{Kind: checksum.ConfigMap, Name: "c"}
	all, one := checksum.Selection{Source: source, All: true}, checksum.Selection{Source: source, Keys: []string{"a"}}
	needs := all
	needs.Required = true
	for sentence, c := range map[string]struct {
		selection checksum.Selection
		value     string
		content   *checksum.Content
		want      Match
		missing   bool
	}{
		"what it holds":                    {all, ring.Digest("n", all, content("1")), content("1"), Same, false},
		"other content":                    {all, ring.Digest("n", all, content("2")), content("1"), Differs, false},
		"of all keys, and one counts":      {one, ring.Digest("n", all, content("2")), content("1"), NoStamp, false},
		"of all keys, and still true":      {one, ring.Digest("n", all, content("1")), content("1"), Same, false},
		"none":                             {all, "", content("1"), NoStamp, false},
		"nonsense":                         {all, "v1:x", content("1"), NoStamp, false},
		"it was not there, and is":         {all, checksum.Absent, content("1"), Differs, false},
		"it was there, and is not":         {all, ring.Digest("n", all, content("1")), nil, Differs, false},
		"it is not there, as before":       {all, checksum.Absent, nil, Same, false},
		"it is not there, and is required": {needs, ring.Digest("n", all, content("1")), nil, NoStamp, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if match, missing := Compare(ring, "n", c.selection, c.value, c.content); match != c.want || missing != c.missing {
				t.Errorf("it is %d, missing %t", match, missing)
			}
		})
	}
}
