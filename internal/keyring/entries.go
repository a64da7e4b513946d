package keyring

import (
	"cmp"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// nameFormat is how an entry of the Secret is named, in UTC.
const nameFormat = "20060102T150405Z"

// entry is one key as it is stored. It prints as the name and the key's id.
type entry struct {
	name string
	made time.Time
	key  checksum.Key
	// material gives the checksum.KeySize bytes of the key. They lie behind a
	// function because fmt prints the fields of whatever an entry stands in.
	material func() []byte
}

func newEntry(made time.Time, material []byte) (entry, error) {
	key, err := checksum.NewKey(material)
	if err != nil {
		return entry{}, err
	}
	kept := [checksum.KeySize]byte(material)
	return entry{name: made.Format(nameFormat), made: made, key: key, material: func() []byte { return slices.Clone(kept[:]) }}, nil
}

// String keeps a key out of logs.
func (e entry) String() string { return e.name + " (" + e.key.String() + ")" }

// GoString keeps a key out of logs.
func (e entry) GoString() string { return e.String() }

// MarshalLog keeps a key out of logs.
func (e entry) MarshalLog() any { return e.String() }

// contents is what the data of the Secret say.
type contents struct {
	// entries are the usable keys, the oldest by name first.
	entries []entry
	// retired are the names of entries that are empty on purpose.
	retired []string
	// unreadable are the names of all others.
	unreadable []string
}

// parse reads the data of the Secret. Nothing in them stops what else is there.
func parse(data map[string][]byte) contents {
	var c contents
	for name, value := range data {
		made, ok := parseName(name)
		if ok && len(value) == 0 {
			c.retired = append(c.retired, name)
			continue
		}
		e, err := newEntry(made, value)
		if !ok || err != nil {
			c.unreadable = append(c.unreadable, name)
			continue
		}
		c.entries = append(c.entries, e)
	}
	slices.SortFunc(c.entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	slices.Sort(c.retired)
	slices.Sort(c.unreadable)
	return c
}

func parseName(name string) (time.Time, bool) {
	made, err := time.Parse(nameFormat, name)
	return made, err == nil && made.Format(nameFormat) == name
}

// known is a key that this process knows.
type known struct {
	entry
	// appeared is the earlier of the time in its name and when this process
	// first saw it.
	appeared time.Time
	// stored tells that the Secret held it when last looked at.
	stored bool
}

// choose picks the key that makes new digests: the newest by name whose grace
// has passed, the oldest when it has passed for none. keys are sorted by name.
// next is when that changes by itself, zero if never; ok is false when no key
// is stored.
func choose(keys []known, now time.Time, grace time.Duration) (signing known, next time.Time, ok bool) {
	for _, key := range slices.Backward(keys) {
		if !key.stored {
			continue
		}
		signing, ok = key, true
		since := key.appeared.Add(grace)
		if !since.After(now) {
			return signing, next, ok
		}
		if next.IsZero() || since.Before(next) {
			next = since
		}
	}
	return signing, next, ok
}

// put adds a key to the data of the Secret: under its own name, in place of
// what is damaged there, else under the next earlier name that is free, so that
// it never becomes the newest by that.
func put(data map[string][]byte, e entry) {
	for made := e.made; ; made = made.Add(-time.Second) {
		name := made.Format(nameFormat)
		value, taken := data[name]
		damaged := name == e.name && len(value) != 0 && len(value) != checksum.KeySize
		if !taken || damaged {
			data[name] = e.material()
			return
		}
	}
}
