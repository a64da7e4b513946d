package checksum

import (
	"maps"

	"github.com/configstamp/configstamp/internal/reason"
)

// stampAll stamps every reference with what is true now. Where that is not
// proven, what is on record stays, if it covers what is referenced now: at worst
// the controller finds it untrue, and no change is lost. A value on record
// that still verifies stays as it is written, under whatever key. What is
// missing goes unstamped, as does what nobody reports: its first content will be
// the baseline. What somebody has declined stays at what is on record, where the
// template changes for our sake, or in annotations alone. misled are the sources of Misled.
func stampAll(ring *Ring, a *admission, misled ...Source) Decision {
	w := newStamping(ring, a)
	w.pins, w.misled = a.Snapshots != nil && a.Policy.Pin, misled
	for _, s := range a.Selections {
		w.stamp(s)
	}
	decision := w.decision
	if a.Policy.RestartUnstamped && len(decision.Records.Stamps) == 0 && decision.Records.Baseline == nil {
		// The pods start with nothing that counts, which is known: what counts later
		// is no reason to take the workload for one that was found without stamps.
		decision.Records.Baseline = map[Source]string{}
	}
	switch decision.Records.Pins = pinsOnRecord(w.pinned); {
	case a.Snapshots == nil:
		decision.Records.Pins = a.Held.pinsBeside(decision.Records.Stamps)
	case !a.Change.updates() && maps.Equal(decision.Records.Stamps, a.Held.Stamps): // they never roll by themselves
		decision.Records.Pins, decision.NewPins = a.Held.Pins, nil
	}
	if a.binds() {
		decision.Records.Declined = ring.declinedAnew(a)
	}
	return decision
}

// binds reports whether declined content binds a request that stamps: a new image may need
// the new content, a mere restart does not.
func (a *admission) binds() bool { return a.Change != TemplateChanged || a.Revision == UndoUnknown }

// stamping is the work of stamping all references of a template.
type stamping struct {
	ring     *Ring
	a        *admission
	decision Decision
	// pins tells that the template is to be pinned, and pinned is what has been; held are
	// the pins on record.
	pins         bool
	pinned, held Pins
	declined     Declined
	misled       []Source
	sorted       []Reference // the template's, by source, once somebody has asked
	observed     bool        // it was told that nothing is pinned while mode is observe
	// undo tells that what somebody declines now is all that stays away.
	undo bool
}

func newStamping(ring *Ring, a *admission) *stamping {
	return &stamping{
		ring: ring, a: a, decision: Decision{Records: Records{Stamps: map[string]string{}}, Outcome: reason.Stamped},
		pinned: Pins{}, held: a.Held.PinnedAt(), declined: a.Held.declined(),
	}
}

// stamp stamps one reference, and pins it.
func (w *stamping) stamp(s Selection) {
	a, stamps, key := w.a, w.decision.Records.Stamps, StampKey(s.Source)
	held, recorded := a.Held.Of(s.Source)
	content := a.Content(s.Source)
	if content != nil && content.Unwatched && !s.HoldOnly {
		w.decision.Findings = append(w.decision.Findings, Finding{Reason: reason.NotWatched, Source: s.Source})
	}
	s = s.of(content)
	w.decision.Findings = append(w.decision.Findings, s.faults(content)...)
	j := w.ring.judge(a.Namespace, &s, &a.Held, undone{w.declined, w.pinsHeld}, content)
	if j.declined && !w.undo && w.keepDeclined(s.Source, key) {
		return
	}
	if recorded && !a.Fresh && !s.HoldOnly && s.covers(held) {
		stamps[key] = held
		w.pin(&s, content)
		return
	}
	switch j.verdict {
	case Missing:
		if !s.Source.comesByItself() {
			w.decision.Findings = append(w.decision.Findings, s.missingFinding(content))
		}
		return
	case True:
		if s.HoldOnly || w.misleads(&s, held) {
			return
		}
		stamps[key] = held
	case Unreported:
		if recorded {
			stamps[key] = held
		}
		return
	default:
		stamps[key] = w.ring.Digest(a.Namespace, s, content)
	}
	w.pin(&s, content)
}

func (w *stamping) pinsHeld() Pins { return w.held }

// keepDeclined keeps stamp and pin on record of a source whose content somebody has
// declined, if that binds the request.
func (w *stamping) keepDeclined(source Source, key string) bool {
	if !w.a.binds() {
		w.decision.Findings = append(w.decision.Findings, Finding{Reason: reason.DeclinedCleared, Source: source})
		return false
	}
	stamp, stamped := w.a.Held.Stamps[key]
	if !stamped {
		return false // there is nothing that pods could keep
	}
	w.decision.Records.Stamps[key] = stamp
	if pin, ok := w.held[source]; ok { // whatever the policy says now: pods are to have what the stamp says
		w.pinned[source] = pin
	}
	w.decision.Findings = append(w.decision.Findings, Finding{Reason: reason.DeclinedKept, Source: source})
	return true
}
