package checksum_test

import (
	"maps"
	"slices"
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

// What is read of pins is written and read again as it was, and names snapshots of the
// sources that it stands beside.
func FuzzParsePins(f *testing.F) {
	f.Add(`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa startup,live","configmap/a":"a-00112233445566778899 live"}`)
	f.Add(`{"configmap/web-message":"web-extra-3f2a91c07d5e8b4416aa startup"}`)
	f.Add(`{"secret/db-password":"db-password-3f2a91c07d5e8b4416aa startup"}`)
	f.Add(`{"configmap/web-message":"web-message-3f2a91c07d5e8b4416aa live,live"}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		pins, err := checksum.ParsePins(annotation)
		if err != nil {
			if pins != nil {
				t.Fatalf("an error, and %s", pins)
			}
			return
		}
		for source, pin := range pins {
			if source.Kind != checksum.ConfigMap || !checksum.SnapshotFits(source, pin.Snapshot) || !checksum.LooksLikeSnapshot(pin.Snapshot) || len(pin.Uses) == 0 {
				t.Fatalf("%q pins %s by %v", annotation, source, pin)
			}
		}
		written := pins.String()
		again, err := checksum.ParsePins(written)
		if err != nil || len(again) != len(pins) || again.String() != written {
			t.Fatalf("%q is written as %q, and that is read as %s, %v", annotation, written, again, err)
		}
	})
}

// What is read of declined content is written and read again as it was.
func FuzzParseDeclined(f *testing.F) {
	f.Add(`{"configmap/web-message":"v1:absent v1:530192c5:all:08e49ca2a335e58609367034d0b8d258","secret/db-password":"x"}`)
	f.Add(`{"configmap/web-message":"a b c d e"}`)
	f.Add(`{"configmap/web-message":""}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		declined, err := checksum.ParseDeclined(annotation)
		if err != nil {
			if declined != nil {
				t.Fatalf("an error, and %s", declined)
			}
			return
		}
		for source, values := range declined {
			if len(values) == 0 || len(values) > 3 {
				t.Fatalf("%q declines %q of %s", annotation, values, source)
			}
		}
		written := declined.String()
		again, err := checksum.ParseDeclined(written)
		if err != nil || !maps.EqualFunc(declined, again, slices.Equal[[]string]) || again.String() != written {
			t.Fatalf("%q is written as %q, and that is read as %s, %v", annotation, written, again, err)
		}
	})
}
