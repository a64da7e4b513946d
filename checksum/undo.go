package checksum

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
)

// undoes reports whether an admission is an undo that is believed.
func (a *admission) undoes() bool {
	return a.Revision == Undo && a.Snapshots != nil && a.Policy.Pin && a.Change != Created && a.Asker == Anyone && len(a.Sent.PinnedAt()) > 0
}

// accepts reports whether somebody takes what was declined. Our own account never does.
func (a *admission) accepts() bool { return a.Asker == Accepter && a.Change != Created }

// undo leaves the stamps and pins of what was pinned at that revision as they were sent,
// stamps all else with what is true now, and declines what the former hold now. Where that
// is not proven, it is what is known.
func undo(ring *Ring, a *admission) Decision {
	w := newStamping(ring, a)
	w.decision.Outcome, w.undo = reason.UndoTaken, true
	if w.declined == nil {
		w.declined = Declined{}
	}
	back := a.Sent.PinnedAt()
	for _, s := range a.Selections {
		if pin, ok := back[s.Source]; ok {
			w.goBack(s, pin)
			continue
		}
		w.stamp(s)
		sent, wanted := a.Sent.Stamps[StampKey(s.Source)]
		if wanted && sent != w.decision.Records.Stamps[StampKey(s.Source)] {
			w.decision.Findings = append(w.decision.Findings, Finding{Reason: reason.NotUndone, Source: s.Source})
		}
	}
	for source := range back { // also of what the policy leaves out today
		if stamp, ok := a.Sent.Stamps[StampKey(source)]; ok {
			w.decision.Records.Stamps[StampKey(source)] = stamp
		}
	}
	w.decision.Records.Pins = map[string]string{PinsAnnotation: a.Sent.Pins[PinsAnnotation]}
	w.decision.Records.Declined = w.declined.String()
	return w.decision
}

// goBack declines what a source holds, unless that is what the template goes back to:
// then it is declined no more.
func (w *stamping) goBack(s Selection, pin Pin) {
	a, content := w.a, w.a.Content(s.Source)
	s = s.of(content)
	sent := a.Sent.Stamps[StampKey(s.Source)]
	values := slices.DeleteFunc(slices.Clone(w.declined[s.Source]), func(value string) bool {
		return value == sent || w.ring.holds(a.Namespace, s, value, content)
	})
	if !w.ring.NamesSnapshot(a.Namespace, s.Source, content, pin.Snapshot) && !w.ring.holds(a.Namespace, s, sent, content) {
		values = slices.Insert(values, 0, w.ring.Digest(a.Namespace, s, content))
		w.decision.Findings = append(w.decision.Findings, Finding{Reason: reason.UndoTaken, Source: s.Source, Text: a.madeAt(pin)})
	}
	w.declined[s.Source] = values[:min(len(values), declinedKept)]
}

// madeAt is when the snapshot of a pin was made, "" if that is not known.
func (a *admission) madeAt(pin Pin) string {
	made := a.Snapshots.MadeAt(pin.Snapshot)
	if made.IsZero() {
		return ""
	}
	return made.UTC().Format(time.RFC3339)
}
