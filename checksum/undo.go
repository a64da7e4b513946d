package checksum

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
)

// undoes reports whether a request is an undo, and is believed.
func (a *admission) undoes() bool {
	return a.Revision == Undo && a.Snapshots != nil && a.Policy.Pin && a.Change != Created && a.Asker == Anyone && len(a.Sent.PinnedAt()) > 0
}

// accepts reports whether a client takes declined content. Our own account never does.
func (a *admission) accepts() bool { return a.Asker == Accepter && a.Change != Created }

// undo leaves the stamps and pins of the sources that were pinned at that revision as they were sent, and declines what
// these sources hold now. It stamps all others with their present content. If that is not proven, it is the cached one.
func undo(ring *Ring, a *admission) Decision {
	w := newStamping(ring, a)
	w.decision.Outcome, w.undo = reason.UndoTaken, true
	if w.declined == nil {
		w.declined = Declined{}
	}
	back, stamps := a.Sent.PinnedAt(), w.decision.Records.Stamps
	for _, s := range a.Selections {
		key := StampKey(s.Source)
		sent, wanted := a.Sent.Stamps[key]
		if pin, ok := back[s.Source]; ok {
			w.goBack(s, pin, sent)
		} else if w.stamp(s); wanted && sent != stamps[key] {
			w.find(Finding{Reason: reason.NotUndone, Source: s.Source})
		}
	}
	for source := range back { // also those that the policy leaves out today
		key := StampKey(source)
		if stamp, ok := a.Sent.Stamps[key]; ok {
			stamps[key] = stamp
		}
	}
	w.decision.Records.Pins = map[string]string{PinsAnnotation: a.Sent.Pins[PinsAnnotation]}
	w.decision.Records.Declined = w.declined.String()
	return w.decision
}

// goBack declines the present content of a source, unless the template goes back to it: then it is declined no more.
func (w *stamping) goBack(s Selection, pin Pin, sent string) {
	a, content := w.a, w.a.Content(s.Source)
	s = s.of(content)
	values := slices.DeleteFunc(slices.Clone(w.declined[s.Source]), func(value string) bool {
		return value == sent || w.ring.holds(a.Namespace, &s, value, content)
	})
	if !w.ring.NamesSnapshot(a.Namespace, s.Source, content, pin.Snapshot) && !w.ring.holds(a.Namespace, &s, sent, content) {
		values = slices.Insert(values, 0, w.ring.Digest(a.Namespace, s, content))
		w.find(Finding{Reason: reason.UndoTaken, Source: s.Source, Text: a.madeAt(pin)})
	}
	w.declined[s.Source] = values[:min(len(values), declinedKept)]
}

// madeAt returns when the snapshot of a pin was made, "" if that is not known.
func (a *admission) madeAt(pin Pin) string {
	made := a.Snapshots.MadeAt(pin.Snapshot)
	if made.IsZero() {
		return ""
	}
	return made.UTC().Format(time.RFC3339)
}
