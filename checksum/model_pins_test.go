package checksum_test

import (
	"maps"
	"slices"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// pinningModel is what the naive observer knows of pins: the bytes that each snapshot
// holds, the revisions that a workload can go back to, and the bytes that were declined.
type pinningModel struct {
	snapshots map[string]bytesOf
	lost      map[string]bool // snapshots of lost keys
	revisions []checksum.Records
	declined  map[checksum.Source]map[string]written // by value

	// meant is what each value was written of, when it was for the first time: an undo
	// brings old ones back.
	meant map[checksum.Source]map[string]written

	undone, held int
}

func (p *pinningModel) meaning(source checksum.Source, value string, counting []checksum.Reference, now bytesOf) written {
	if p.meant[source] == nil {
		p.meant[source] = map[string]written{}
	}
	w, known := p.meant[source][value]
	if !known || value == checksum.Absent {
		w = written{value: value, seen: seen(counting, now), references: counting}
		p.meant[source][value] = w
	}
	return w
}

func newPinningModel() pinningModel {
	return pinningModel{snapshots: map[string]bytesOf{}, lost: map[string]bool{}, declined: map[checksum.Source]map[string]written{}, meant: map[checksum.Source]map[string]written{}}
}

// loseKeys forgets what nobody can verify any more.
func (p *pinningModel) loseKeys() {
	p.revisions = nil
	for name := range p.snapshots {
		p.lost[name] = true
	}
	for _, values := range p.declined {
		for value, w := range values {
			w.lost = value != checksum.Absent
			values[value] = w
		}
	}
}

// pinned makes a request one of a workload that pins, and now and then an undo, an
// acceptance or a mere restart.
func (m *model) pinned(a *admissionCase) {
	a.Policy, a.References, a.Pinning = m.policy, m.references, m.chance.IntN(10) > 0
	a.AnnotationsOnly = a.TemplateChanged && m.chance.IntN(2) == 0
	a.Accepts = a.Asker == checksum.Roller && m.chance.IntN(8) == 0
	if n := len(m.pinning.revisions); a.Asker == checksum.Anyone && n > 0 && m.policy.Pin && m.chance.IntN(2) == 0 {
		a.Undo, a.Pinning = true, true
		a.Sent = m.pinning.revisions[m.chance.IntN(n)]
		a.Sent.Declined = m.stored.Declined
	}
}

// isDeclined tells whether a content is refused, by the bytes that were sent back.
func (m *model) isDeclined(source checksum.Source, content bytesOf) bool {
	record, recorded := m.recorded[source]
	if !recorded || len(m.counting(source)) == 0 {
		return false
	}
	declined, _ := checksum.ParseDeclined(m.stored.Declined)
	is, unknown := false, false
	for _, value := range declined[source] {
		w := m.pinning.declined[source][value]
		switch {
		case w.lost:
			unknown = unknown || content != nil
		case seen(w.references, content) == w.seen:
			is = true
		}
	}
	return is || unknown && !record.lost
}

// bound checks that a request that declined content binds leaves stamp and pin of its
// sources as they are, and that any other changed template, or an acceptance, ends that.
func (m *model) bound(a *admissionCase, d *checksum.Decision, known map[checksum.Source]bytesOf) {
	if a.Accepts || a.TemplateChanged && !a.AnnotationsOnly && !a.Undo {
		if d.Records.Declined != "" {
			m.fail("it is still declined: %s", d.Records.Declined)
		}
		return
	}
	was, is := m.stored.PinnedAt(), d.Records.PinnedAt()
	for _, source := range m.sources {
		key := checksum.StampKey(source)
		stamp, stamped := m.stored.Stamps[key]
		if a.Undo || !stamped || m.missing(source, known) || !m.isDeclined(source, known[source]) {
			continue
		}
		if r := m.recorded[source]; !r.lost && seen(r.references, known[source]) == r.seen {
			continue
		}
		m.pinning.held++
		if d.Records.Stamps[key] != stamp {
			m.fail("%s was declined, and is stamped", source)
		}
		if a.Pinning && m.policy.Pin && was[source].Snapshot != is[source].Snapshot {
			m.fail("%s was declined, and is pinned anew: %s, then %s", source, was, is)
		}
	}
}

// undone checks that an undo goes back to the bytes of then, and declines those of now.
func (m *model) undone(a *admissionCase, d *checksum.Decision, known map[checksum.Source]bytesOf) {
	m.pinning.undone++
	if d.Outcome != reason.UndoTaken || d.Records.Pins[checksum.PinsAnnotation] != a.Sent.Pins[checksum.PinsAnnotation] || len(d.Records.Baseline) > 0 {
		m.fail("an undo that is not believed: %s", d.Outcome)
	}
	declined, _ := checksum.ParseDeclined(d.Records.Declined)
	for source, pin := range a.Sent.PinnedAt() {
		key := checksum.StampKey(source)
		if d.Records.Stamps[key] != a.Sent.Stamps[key] {
			m.fail("%s was pinned then, and its stamp is another", source)
		}
		counting, then, now := m.counting(source), m.pinning.snapshots[pin.Snapshot], known[source]
		counted := m.pinning.meant[source][a.Sent.Stamps[key]].references // then
		same := seen(counted, then) == seen(counted, now)
		sees := slices.ContainsFunc(declined[source], func(value string) bool {
			w, old := m.pinning.declined[source][value]
			return !old || !w.lost && seen(w.references, now) == w.seen
		})
		if len(counting) > 0 && !same && !sees {
			m.fail("%s is at older content, and that of now is not declined: %s", source, d.Records.Declined)
		}
	}
	m.remember(declined, known)
}

// remember notes the bytes of values that are new.
func (m *model) remember(declined checksum.Declined, known map[checksum.Source]bytesOf) {
	for source, values := range declined {
		if m.pinning.declined[source] == nil {
			m.pinning.declined[source] = map[string]written{}
		}
		for _, value := range values {
			if _, old := m.pinning.declined[source][value]; !old {
				counting := m.counting(source)
				m.pinning.declined[source][value] = written{value: value, seen: seen(counting, known[source]), references: counting}
			}
		}
	}
}

// snapshots makes what has to be there before the answer; now and then one cannot be made, and the decision is
// another one.
func (m *model) snapshots(ring *checksum.Ring, a admissionCase, d checksum.Decision) checksum.Decision {
	a.Unmade = map[checksum.Source]reason.Reason{}
	for source, pin := range d.NewPins {
		if m.chance.IntN(8) == 0 {
			a.Unmade[source] = reason.SnapshotQuota
			continue
		}
		if before, made := m.pinning.snapshots[pin.Snapshot]; made && !maps.Equal(before, m.now[source]) {
			m.fail("%s is one name for %v and %v", pin.Snapshot, before, m.now[source])
		}
		m.pinning.snapshots[pin.Snapshot] = maps.Clone(m.now[source])
	}
	if len(a.Unmade) > 0 {
		d = decide(ring, a)
	}
	for source, pin := range d.Records.PinnedAt() {
		if _, made := m.pinning.snapshots[pin.Snapshot]; !made {
			m.fail("%s is pinned by %s, which nobody has made", source, pin.Snapshot)
		}
	}
	return d
}

// agree checks that stamps and pins stand for the same bytes (P1), and notes the revision.
func (m *model) agree() {
	declined, _ := checksum.ParseDeclined(m.stored.Declined)
	m.remember(declined, m.now)
	pins, good := m.stored.PinnedAt(), true
	for source, pin := range pins {
		record := m.recorded[source]
		if record.lost || m.pinning.lost[pin.Snapshot] || record.value != m.stored.Stamps[checksum.StampKey(source)] {
			good = good && !m.pinning.lost[pin.Snapshot]
			continue
		}
		if got := seen(record.references, m.pinning.snapshots[pin.Snapshot]); got != record.seen {
			m.fail("%s is stamped for %s, and its pin gives %s", source, record.seen, got)
		}
	}
	if n := len(m.pinning.revisions); len(pins) > 0 && good && (n == 0 || !m.pinning.revisions[n-1].Equal(m.revision())) {
		m.pinning.revisions = append(m.pinning.revisions, m.revision())
	}
}

func (m *model) revision() checksum.Records {
	return checksum.Records{Stamps: m.stored.Stamps, Pins: m.stored.Pins}
}

// podsOfPins gives pods the content of their pins.
func (m *model) podsOfPins() {
	if m.pods == nil {
		return
	}
	pins := m.stored.PinnedAt()
	for _, source := range m.sources {
		if pin, ok := pins[source]; ok && (m.pinning.lost[pin.Snapshot] || len(m.recorded[source].references) != len(m.counting(source))) {
			m.pods = nil // nobody can verify it, or it is an undo to a revision under another policy
			return
		} else if ok {
			m.pods[source] = m.pinning.snapshots[pin.Snapshot]
		} else if m.isDeclined(source, m.now[source]) {
			m.pods = nil
			return
		}
	}
}
