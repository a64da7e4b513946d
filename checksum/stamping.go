package checksum

import (
	"maps"

	"github.com/configstamp/configstamp/internal/reason"
)

// stampAll stamps every reference with the present content. If that is not proven, the recorded value stays, provided
// that it covers the present references: at worst the controller finds it untrue, and no change is lost. A recorded
// value that still verifies stays as it is written, under whatever key. Missing and unreported sources are not
// stamped: their first content will be the baseline. Declined content is not taken if the template changes for our
// sake, or in annotations alone. misled are the sources of Misled.
func stampAll(ring *Ring, a *admission, misled ...Source) Decision {
	w := newStamping(ring, a)
	w.pins, w.misled = a.Snapshots != nil && a.Policy.Pin, misled
	for _, s := range a.Selections {
		w.stamp(s)
	}
	decision := w.decision
	if a.Policy.RestartUnstamped && len(decision.Records.Stamps) == 0 && decision.Records.Baseline == nil {
		// It is known that the pods start with nothing that counts. Sources that count later must not make it look
		// like a workload that was found without stamps.
		decision.Records.Baseline = map[Source]string{}
	}
	switch decision.Records.Pins = pinsOnRecord(w.pinned); {
	case a.Snapshots == nil:
		decision.Records.Pins = a.Held.pinsBeside(decision.Records.Stamps)
	case !a.Change.updates() && maps.Equal(decision.Records.Stamps, a.Held.Stamps): // they never roll by themselves
		decision.Records.Pins, decision.NewPins = a.Held.Pins, nil
	}
	switch {
	case !a.binds():
	case w.outdated:
		decision.Records.Declined = w.declined.String()
	default:
		decision.Records.Declined = a.Held.Declined
	}
	return decision
}

// binds reports whether a request that stamps stays away from declined content: a new image may need the new content, a
// mere restart does not.
func (a *admission) binds() bool { return a.Change != TemplateChanged || a.Revision == UndoUnknown }

// stamping stamps the sources that a template references.
type stamping struct {
	ring     *Ring
	a        *admission
	decision Decision
	pins     bool // the template is pinned
	// held are the pins on record, and pinned those of the decision.
	held, pinned Pins
	references   map[Source][]Reference // the template's, once they are needed
	observed     bool                   // the finding that nothing is pinned under mode observe was added
	misled       []Source
	declined     Declined
	outdated     bool // declined values that cannot be compared any more were written anew
	undo         bool // what the undo declines stays away, and nothing else
}

func newStamping(ring *Ring, a *admission) *stamping {
	return &stamping{
		ring: ring, a: a, decision: Decision{Records: Records{Stamps: map[string]string{}}, Outcome: reason.Stamped},
		pinned: Pins{}, held: a.Held.PinnedAt(), declined: a.Held.declined(),
	}
}

func (w *stamping) find(findings ...Finding) {
	w.decision.Findings = append(w.decision.Findings, findings...)
}

// stamp stamps one source, and pins it.
func (w *stamping) stamp(selection Selection) {
	a, stamps, key := w.a, w.decision.Records.Stamps, StampKey(selection.Source)
	s := w.ring.judge(a.Namespace, selection, &a.Held, undone{w.declined, func() Pins { return w.held }}, a.Content)
	if s.content != nil && s.content.Unwatched && !selection.HoldOnly {
		w.find(Finding{Reason: reason.NotWatched, Source: s.Source})
	}
	w.find(s.faults()...)
	if s.outdated && !w.undo {
		w.declined[s.Source], w.outdated = s.values, true
	}
	if s.declined && !w.undo && w.keepDeclined(s.Source, key) {
		return
	}
	if s.recorded && !a.Fresh && !s.HoldOnly && s.covers(s.record) {
		stamps[key] = s.record
		w.pin(&s, key)
		return
	}
	switch s.verdict {
	case Missing:
		if !s.Source.comesByItself() {
			w.find(s.missing())
		}
		return
	case True:
		if s.HoldOnly || w.misleads(&s, key) {
			return
		}
		stamps[key] = s.record
	case Unreported:
		if s.recorded {
			stamps[key] = s.record
		}
		return
	default:
		stamps[key] = w.ring.Digest(a.Namespace, s.Selection, s.content)
	}
	w.pin(&s, key)
}

// keepDeclined keeps the recorded stamp and pin of a source whose content an undo declined, if that binds the request.
func (w *stamping) keepDeclined(source Source, key string) bool {
	if !w.a.binds() {
		w.find(Finding{Reason: reason.DeclinedCleared, Source: source})
		return false
	}
	stamp, stamped := w.a.Held.Stamps[key]
	if !stamped {
		return false // there is nothing that pods could keep
	}
	w.decision.Records.Stamps[key] = stamp
	if pin, ok := w.held[source]; ok { // whatever the policy says now: pods get the content of the stamp
		w.pinned[source] = pin
	}
	w.find(Finding{Reason: reason.DeclinedKept, Source: source})
	return true
}
