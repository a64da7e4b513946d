package checksum_test

import (
	"maps"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// admit sends one random request, applies the decision, and holds it against
// what the naive observer knows.
func (m *model) admit() {
	a := admissionCase{
		Namespace: namespace, Held: m.stored, Sent: m.stored, Fresh: m.chance.IntN(6) > 0,
		Asker:           checksum.Asker(m.chance.IntN(3)),
		TemplateChanged: m.chance.IntN(5) == 0,
		Selections:      checksum.Selections(m.references, m.policy),
	}
	if a.Asker == checksum.Anyone && m.chance.IntN(2) == 0 {
		a.Sent = checksum.Records{}
	}
	m.pinned(&a)
	known := m.now
	if !a.Fresh { // a cache that lags behind in one source
		known = maps.Clone(m.now)
		known[m.sources[m.chance.IntN(3)]] = bytesOf{"a": "lagging", "b": "0", "c": "0"}
	}
	contents := map[checksum.Source]*checksum.Content{}
	for _, source := range m.sources {
		contents[source] = known[source].content()
	}
	a.Content = func(s checksum.Source) *checksum.Content { return contents[s] }
	ring := checksum.NewRing(m.keys[0], m.keys[1:]...)

	d := decide(ring, a)
	m.note("asker %d, template %v (annotations %v), fresh %v, undo %v, accepts %v: %s %s", a.Asker, a.TemplateChanged, a.AnnotationsOnly, a.Fresh, a.Undo, a.Accepts, d.Outcome, d.Findings)
	retemplated := !maps.Equal(d.Records.Stamps, m.stored.Stamps)

	m.bound(&a, &d, known)
	asked := a
	accepted := m.stored.Declined
	if a.Accepts {
		m.stored.Declined = ""
	}
	anyChanged := false
	for _, source := range m.sources {
		anyChanged = anyChanged || m.changed(source)
	}
	mayRoll := a.Asker == checksum.Roller && a.Fresh && anyChanged && !m.anyMissing()
	switch {
	case a.Undo:
		m.undone(&a, &d, known)
	case a.TemplateChanged:
		if len(d.Records.Baseline) > 0 {
			m.fail("it rolls anyway, but a baseline stays: %v", d.Records.Baseline)
		}
	case a.Asker == checksum.Recorder && retemplated:
		m.fail("a recording touched the template")
	case a.Asker == checksum.Anyone && !d.Records.Equal(m.stored):
		m.fail("somebody's update changed what is on record")
	case retemplated && !mayRoll:
		m.fail("a roll, but no content has changed since its record, or it is held")
	case mayRoll && d.Outcome != reason.Stamped:
		m.fail("content has changed since its record, but nothing rolls")
	}

	m.stored.Declined = accepted
	a.Sent = d.Records
	if again := decide(ring, a); !again.Records.Equal(d.Records) {
		m.fail("a reinvocation changes more: %v, then %v", d.Records, again.Records)
	}
	d = m.snapshots(ring, asked, d)
	m.apply(d.Records, known)
	m.agree()
	if a.TemplateChanged || retemplated || a.Undo {
		m.pods = nil
		if a.Fresh && !m.anyMissing() {
			m.pods = maps.Clone(m.now)
		}
		m.podsOfPins()
	}
	if a.Asker == checksum.Roller && a.Fresh && !m.anyMissing() {
		m.settled(ring, a)
	}
}

// apply stores records, and remembers the bytes that each new one stands for.
func (m *model) apply(records checksum.Records, known map[checksum.Source]bytesOf) {
	m.stored = records
	values := m.recordsNow()
	for _, source := range m.sources {
		value, ok := values[source]
		if before := m.recorded[source].value; !ok {
			delete(m.recorded, source)
		} else if value != before {
			m.recorded[source] = m.pinning.meaning(source, value, m.counting(source), known[source])
		}
	}
}

// settled is the state after a rolling re-admission that nothing hindered.
func (m *model) settled(ring *checksum.Ring, a admissionCase) {
	review := ring.Review(namespace, &a.Policy, a.Selections, m.stored, a.Content)
	if len(review.Untrue)+len(review.ToRecord)+len(review.Missing) > 0 {
		m.fail("after a roll that nothing hindered: %+v", review)
	}
	if m.pods == nil {
		return
	}
	kept := reason.Kept
	for _, source := range m.sources {
		counting := m.counting(source)
		if m.isDeclined(source, m.now[source]) {
			if r := m.recorded[source]; !r.lost && seen(r.references, m.now[source]) != r.seen {
				kept = reason.OnHold
			}
			continue
		}
		if was, is := seen(counting, m.pods[source]), seen(counting, m.now[source]); was != is && len(counting) > 0 {
			m.fail("pods started with %s of %s, which holds %s", was, source, is)
		}
	}
	a.Held, a.TemplateChanged, a.Accepts = m.stored, false, false
	if again := decide(ring, a); again.Outcome != kept || !again.Records.Equal(m.stored) {
		m.fail("asked to roll again at once, it is %s", again.Outcome)
	}
}

func TestSequencesOfEditsAndAdmissions(t *testing.T) {
	chance := seeded(t)
	rolls, settled, undone, held := 0, 0, 0, 0
	for range 60 {
		m := newModel(t, chance)
		for range 100 {
			before := m.stored.Stamps
			m.step()
			if !maps.Equal(before, m.stored.Stamps) {
				rolls++
			}
			if m.pods != nil {
				settled++
			}
		}
		undone, held = undone+m.pinning.undone, held+m.pinning.held
	}
	// A model that never comes to the point proves nothing.
	if rolls < 60 || settled < 60 || undone < 30 || held < 5 {
		t.Errorf("%d changes of stamps, %d steps with known pods, %d undos and %d requests bound by them: the sequences are too tame", rolls, settled, undone, held)
	}
}
