package checksum_test

import (
	"maps"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// Each target runs for as long as is wanted:
// go test ./checksum -run '^$' -fuzz FuzzAssess -fuzztime 1m

// Only what this package writes of the present content is True, whatever
// somebody wrote into an annotation.
func FuzzAssess(f *testing.F) {
	selections := checksum.Selections([]checksum.Reference{envFrom(message), optional(env(password, "a")), used(checksum.Live, mounted(password)), optional(mounted(vault))}, provided())
	contents := []*checksum.Content{nil, text("a", "1")}
	for _, s := range selections {
		for _, content := range contents {
			f.Add(ring.Digest(namespace, s, content), true)
		}
	}
	f.Fuzz(func(t *testing.T, record string, recorded bool) {
		for _, s := range selections {
			for _, content := range contents {
				verdict := ring.Assess(namespace, s, record, recorded, content)
				_, missing := s.Missing(content)
				ours := record == checksum.NewRing(key(1)).Digest(namespace, s, content) || record == checksum.NewRing(key(2)).Digest(namespace, s, content)
				switch {
				case (verdict == checksum.Missing) != missing:
					t.Fatalf("missing %v, assessed as %v", missing, verdict)
				case missing:
				case s.Source == vault && content == nil:
					if verdict != checksum.Unreported {
						t.Fatalf("nobody reports, assessed as %v", verdict)
					}
				case (verdict == checksum.Unrecorded) != !recorded:
					t.Fatalf("recorded %v, assessed as %v", recorded, verdict)
				case recorded && (verdict == checksum.True) != ours:
					t.Fatalf("%q of %v is assessed as %v", record, s.Source, verdict)
				}
			}
		}
		if id, unknown := ring.UnknownKey(record); unknown {
			if _, ok := ring.Key(id); ok || len(id) != 8 {
				t.Fatalf("%q: key %q is unknown", record, id)
			}
		}
	})
}

// What is read of a baseline is written and read again as it was.
func FuzzParseBaseline(f *testing.F) {
	f.Add(`{"configmap/web-message":"v1:absent","secret/db-password":"x","secretproviderclass/web-vault":"y"}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		baseline, err := checksum.ParseBaseline(annotation)
		if err != nil {
			if baseline != nil {
				t.Fatalf("an error, and %v", baseline)
			}
			return
		}
		written := checksum.FormatBaseline(baseline)
		again, err := checksum.ParseBaseline(written)
		if err != nil || !maps.Equal(baseline, again) {
			t.Fatalf("%q is written as %q, and that is read as %v, %v", annotation, written, again, err)
		}
		if checksum.FormatBaseline(again) != written {
			t.Fatalf("%q is not written the same again", written)
		}
	})
}

// What is read as a source can exist, is written as it was, and has a stamp.
func FuzzParseSource(f *testing.F) {
	f.Add("configmap/web-message")
	f.Add("secret/db.password-1")
	f.Add("secretproviderclass/web-vault")
	f.Fuzz(func(t *testing.T, written string) {
		source, err := checksum.ParseSource(written)
		if err != nil {
			return
		}
		if source.String() != written || !source.Nameable() {
			t.Fatalf("%q is read as %v", written, source)
		}
		if stamp := checksum.StampKey(source); !checksum.IsStampKey(stamp) {
			t.Fatalf("%v has the stamp %q, which is none", source, stamp)
		}
	})
}
