package keyring

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// keyOf is a key of 32 equal bytes, for tests.
func keyOf(b byte) []byte { return bytes.Repeat([]byte{b}, checksum.KeySize) }

func idOf(b byte) string {
	key, err := checksum.NewKey(keyOf(b))
	if err != nil {
		panic(err)
	}
	return key.ID()
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func name(sinceNoon time.Duration) string { return noon.Add(sinceNoon).Format(nameFormat) }

func TestParse(t *testing.T) {
	c := parse(map[string][]byte{
		"20261121T120000Z":      keyOf(2),
		"20260101T000000Z":      keyOf(1),
		"20260101T000001Z":      nil,
		"00000101T000000Z":      {},
		"00000101T000001Z":      keyOf(4),
		"20260101T000002Z":      []byte("short"),
		"20260101T000003Z":      append(keyOf(1), 'x'),
		"key":                   keyOf(3),
		"20260101":              keyOf(3),
		"20261321T120000Z":      keyOf(3),
		"20260101T000000.5Z":    keyOf(3),
		"20261121T120000.000Z":  keyOf(3),
		"empty-without-a-time":  nil,
		"":                      nil,
		"20260101T000000+01:00": keyOf(3),
	})
	if len(c.entries) != 3 || c.entries[0].key.ID() != idOf(4) || c.entries[1].key.ID() != idOf(1) || c.entries[2].key.ID() != idOf(2) || !c.entries[2].made.Equal(noon) {
		t.Errorf("entries: %v", c.entries)
	}
	if !slices.Equal(c.retired, []string{"00000101T000000Z", "20260101T000001Z"}) || len(c.unreadable) != 10 {
		t.Errorf("retired %v, unreadable %v", c.retired, c.unreadable)
	}
}

func TestChoose(t *testing.T) {
	key := func(b byte, made, appeared time.Duration, stored bool) known {
		e, err := newEntry(noon.Add(made), keyOf(b))
		if err != nil {
			t.Fatal(err)
		}
		return known{entry: e, appeared: noon.Add(appeared), stored: stored}
	}
	const grace = time.Minute
	cases := map[string]struct {
		keys []known
		want string
		next time.Duration
	}{
		"none":                                     {nil, "", 0},
		"a single one signs at once":               {[]known{key(1, 0, 0, true)}, idOf(1), grace},
		"a new one only verifies":                  {[]known{key(1, -time.Hour, -time.Hour, true), key(2, 0, 0, true)}, idOf(1), grace},
		"until its grace has passed":               {[]known{key(1, -time.Hour, -time.Hour, true), key(2, -grace, -grace, true)}, idOf(2), 0},
		"the newest of those whose grace passed":   {[]known{key(1, -2*grace, -2*grace, true), key(2, -grace, -grace, true), key(3, 0, 0, true)}, idOf(2), grace},
		"the oldest when it has passed for none":   {[]known{key(1, -2*time.Second, -2*time.Second, true), key(2, 0, 0, true)}, idOf(1), grace - 2*time.Second},
		"seen before the time in its name":         {[]known{key(1, -time.Hour, -time.Hour, true), key(2, time.Hour, -grace, true)}, idOf(2), 0},
		"what is not stored never signs":           {[]known{key(1, -time.Hour, -time.Hour, true), key(2, -grace, -grace, false)}, idOf(1), 0},
		"nothing signs when nothing is stored":     {[]known{key(1, -time.Hour, -time.Hour, false)}, "", 0},
		"the only stored one signs, however young": {[]known{key(1, -time.Hour, -time.Hour, false), key(2, 0, 0, true)}, idOf(2), grace},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			signing, next, ok := choose(c.keys, noon, grace)
			if got := signing.key.ID(); got != c.want || ok != (c.want != "") {
				t.Errorf("signs with %q, %t; want %q", got, ok, c.want)
			}
			if c.next == 0 && !next.IsZero() || c.next != 0 && !next.Equal(noon.Add(c.next)) {
				t.Errorf("next at %s, want noon + %s", next, c.next)
			}
		})
	}
}

func TestPutLosesNothing(t *testing.T) {
	add := func(data map[string][]byte) map[string][]byte {
		data = maps.Clone(data)
		e, err := newEntry(noon, keyOf(9))
		if err != nil {
			t.Fatal(err)
		}
		put(data, e)
		return data
	}
	cases := map[string]struct{ before, added map[string][]byte }{
		"free":            {map[string][]byte{}, map[string][]byte{name(0): keyOf(9)}},
		"damaged":         {map[string][]byte{name(0): []byte("x")}, map[string][]byte{name(0): keyOf(9)}},
		"taken":           {map[string][]byte{name(0): keyOf(1)}, map[string][]byte{name(-time.Second): keyOf(9)}},
		"retired":         {map[string][]byte{name(0): {}}, map[string][]byte{name(-time.Second): keyOf(9)}},
		"taken and other": {map[string][]byte{name(0): keyOf(1), name(-time.Second): []byte("x")}, map[string][]byte{name(-2 * time.Second): keyOf(9)}},
	}
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			want := maps.Clone(c.before)
			maps.Copy(want, c.added)
			if got := add(c.before); !maps.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("entries %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
		})
	}
}

func TestKeysArePrintedNowhere(t *testing.T) {
	e := parse(map[string][]byte{name(0): keyOf('K')}).entries[0]
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, printed := range []any{e, []entry{e}, known{entry: e}, contents{entries: []entry{e}}} {
			if text := fmt.Sprintf(format, printed); strings.Contains(text, "KKK") || strings.Contains(text, "75, 75") || strings.Contains(text, "75 75") || strings.Contains(text, "0x4b, 0x4b") {
				t.Errorf("%s prints a key: %s", format, text)
			}
		}
	}
}
