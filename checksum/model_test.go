package checksum_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// seeded gives a source of chance, and says how to repeat it:
// CONFIGSTAMP_SEED=<seed> go test ./checksum -run <test>.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CONFIGSTAMP_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CONFIGSTAMP_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// bytesOf is a naive content: keys and values, nil for a source that does not exist.
type bytesOf map[string]string

func (b bytesOf) content() *checksum.Content {
	if b == nil {
		return nil
	}
	var pairs []string
	for name, value := range b {
		pairs = append(pairs, name, value)
	}
	return text(pairs...)
}

// model is one workload and its sources, and what a naive observer knows.
type model struct {
	t          *testing.T
	chance     *rand.Rand
	sources    []checksum.Source
	references []checksum.Reference
	policy     checksum.Policy
	now        map[checksum.Source]bytesOf
	keys       []checksum.Key // the first signs
	made       byte
	stored     checksum.Records
	// recorded is what each record was written of; the observer keeps bytes.
	recorded map[checksum.Source]written
	pinning  pinningModel
	// pods is what the pods started with, nil when nobody can know.
	pods map[checksum.Source]bytesOf
	log  []string
}

type written struct {
	value, seen string
	references  []checksum.Reference // those that counted
	// lost tells that its key is: all that is still known is that the source existed.
	lost bool
}

// seen is what references to a source read of a content, as plain text.
func seen(references []checksum.Reference, content bytesOf) string {
	if content == nil {
		return "nothing"
	}
	read := map[string]string{}
	for _, r := range references {
		for name, value := range content {
			if r.All || slices.Contains(r.Keys, name) {
				read[name] = value
			}
		}
	}
	return fmt.Sprintf("%q", read) // fmt sorts maps
}

func (m *model) counting(source checksum.Source) []checksum.Reference {
	var counting []checksum.Reference
	for _, r := range m.references {
		if r.Source == source && slices.Contains(m.policy.Uses, r.Use) {
			counting = append(counting, r)
		}
	}
	return counting
}

// missing tells whether a container could not start for want of this source.
func (m *model) missing(source checksum.Source, now map[checksum.Source]bytesOf) bool {
	for _, r := range m.references {
		if r.Source != source || r.Optional || (r.Use != checksum.Startup && r.Use != checksum.Live) {
			continue
		}
		if now[source] == nil {
			return true
		}
		for _, name := range r.RequiredKeys {
			if _, ok := now[source][name]; !ok {
				return true
			}
		}
	}
	return false
}

func (m *model) anyMissing() bool {
	return slices.ContainsFunc(m.sources, func(s checksum.Source) bool { return m.missing(s, m.now) })
}

// changed tells whether a source that is not missing differs from its record.
func (m *model) changed(source checksum.Source) bool {
	record, ok := m.recorded[source]
	switch {
	case !ok || len(m.counting(source)) == 0 || m.missing(source, m.now):
		return false
	case m.isDeclined(source, m.now[source]):
		return false
	case record.lost:
		return m.now[source] == nil
	}
	return seen(record.references, m.now[source]) != record.seen
}

func newModel(t *testing.T, chance *rand.Rand) *model {
	m := &model{t: t, chance: chance, policy: pinningPolicy(), pinning: newPinningModel(), now: map[checksum.Source]bytesOf{}, recorded: map[checksum.Source]written{}}
	m.sources = []checksum.Source{message, password, extra}
	m.rotate()
	names := []string{"a", "b", "c"}
	for range 1 + chance.IntN(5) {
		source, name := m.sources[chance.IntN(3)], names[chance.IntN(3)]
		r := []checksum.Reference{envFrom(source), env(source, name), mounted(source), mounted(source, name), {Source: source, Use: checksum.Startup, Keys: []string{name}}}[chance.IntN(5)]
		r.Optional = chance.IntN(3) == 0
		m.references = append(m.references, r)
	}
	for range 4 {
		m.edit()
	}
	return m
}

func (m *model) rotate() {
	m.made++
	m.keys = slices.Insert(m.keys, 0, key(m.made))
}

func (m *model) edit() {
	source := m.sources[m.chance.IntN(3)]
	if m.chance.IntN(5) == 0 {
		m.now[source] = nil
		return
	}
	content := bytesOf{}
	maps.Copy(content, m.now[source])
	name := []string{"a", "b", "c"}[m.chance.IntN(3)]
	if m.chance.IntN(4) == 0 {
		delete(content, name)
	} else {
		content[name] = strconv.Itoa(m.chance.IntN(3))
	}
	m.now[source] = content
}

func (m *model) step() {
	m.log = append(m.log, "")
	switch n := m.chance.IntN(20); {
	case n < 6:
		m.edit()
		m.note("edit: %v", m.now)
	case n == 6 && m.made < 200:
		m.rotate()
		m.note("rotate the key")
	case n == 7 && m.made < 200 && m.chance.IntN(4) == 0:
		m.keys = nil
		m.rotate()
		m.note("lose all keys")
		m.pods = nil
		for source, record := range m.recorded {
			record.lost = record.value != checksum.Absent
			m.recorded[source] = record
		}
		m.pinning.loseKeys()
	case n == 9 && m.chance.IntN(2) == 0:
		m.policy.Pin = !m.policy.Pin
		m.note("pin: %v", m.policy.Pin)
	case n == 8:
		m.policy.Uses = [][]checksum.Use{{checksum.Startup}, {checksum.Startup, checksum.Live}}[m.chance.IntN(2)]
		m.pods = nil
		m.note("policy: %v", m.policy.Uses)
	default:
		m.admit()
	}
}

func (m *model) recordsNow() map[checksum.Source]string {
	values := map[checksum.Source]string{}
	for _, source := range m.sources {
		if value, ok := m.stored.Of(source); ok {
			values[source] = value
		}
	}
	return values
}

func (m *model) note(format string, args ...any) { m.log[len(m.log)-1] = fmt.Sprintf(format, args...) }

func (m *model) fail(format string, args ...any) {
	for i, line := range m.log {
		m.t.Logf("%3d %s", i, line)
	}
	m.t.Logf("references %+v", m.references)
	m.t.Fatalf(format, args...)
}
