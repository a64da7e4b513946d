package checksum

import (
	"maps"
	"time"

	"github.com/configstamp/configstamp/internal/reason"
)

// Asker says who wants a workload admitted.
type Asker int

// The askers.
const (
	// Anyone is any client but these two.
	Anyone Asker = iota
	// Recorder asks for a recording re-admission, which can only write baselines.
	Recorder
	// Roller asks for a rolling re-admission.
	Roller
)

// The field managers by which a re-admission is known.
const (
	RollingManager   = "configstamp"
	RecordingManager = "configstamp-record"
)

// AskerOf reads the field manager of a request.
func AskerOf(fieldManager string) Asker {
	switch fieldManager {
	case RollingManager, AcceptManager:
		return Roller
	case RecordingManager:
		return Recorder
	}
	return Anyone
}

// Admission is one request, reduced to what the rules look at.
type Admission struct {
	Namespace string
	// Create: there is no stored object, and Held is empty but Again.
	Create bool
	// Again tells that a creation brings back the template of a revision that nobody controls,
	// of which Held is what is on record. AgainUnknown: that could not be found out in time.
	Again, AgainUnknown bool
	Asker               Asker
	// Own tells that our own account asks, for certain: see IsOwn.
	Own bool
	// TemplateChanged tells that the requester changed the pod template, our
	// stamps aside.
	TemplateChanged bool
	// Policy is what counts and what holds for the requested workload.
	Policy Policy
	// Selections are what the requested template references, by Selections.
	Selections []Selection
	// Held is on record in the stored object; Sent is what the request carries.
	Held, Sent Records
	// Content gives what a source holds, nil when it does not exist or is not
	// reported.
	Content func(Source) *Content
	// Fresh tells that Content was proven to be what the API server holds now.
	Fresh bool
	// Pinning tells that the process pins, and pins workloads of this kind. References are
	// what the requested template names, each place for itself, for PinUses.
	Pinning    bool
	References []Reference
	// SnapshotOf gives what a snapshot of ours of a source holds, by its name, nil when that is
	// not known; nil where the process does not pin.
	SnapshotOf func(of Source, name string) *Content
	// Undo tells that the request brings the template back to a revision of its own (stamps
	// and pins of the sources that were pinned there included), and that all snapshots of
	// Sent's pins are there, ours, and without a mark. MadeAt says when they were made, for
	// the warnings; nil, or zero: nobody knows.
	Undo   bool
	MadeAt func(Source) time.Time
	// UndoLost tells that it would be an undo, but for a snapshot that is gone. UndoMixed:
	// but for other differences, which somebody else's webhook may have made.
	UndoLost, UndoMixed bool
	// UndoUnknown tells that the revisions could not be read in time. Then nothing that the
	// request may go back to is given up.
	UndoUnknown bool
	// Accepts tells that the request comes by AcceptManager.
	Accepts bool
	// AnnotationsOnly tells that of the template nothing but annotations changed, ours aside.
	AnnotationsOnly bool
	// TemplateBytes and WorkloadBytes are the sizes, keys and values, of the
	// annotations that are not ours.
	TemplateBytes, WorkloadBytes int
}

// NeedsContent reports whether the rules look at content at all: an update
// that changes no template and asks for nothing is answered without it.
func (a *Admission) NeedsContent() bool {
	return a.Create || a.TemplateChanged || a.Asker != Anyone || a.Undo
}

// Decision is what an object must carry of ours after its admission, and why.
type Decision struct {
	Records Records
	// Outcome is what the admission comes to, one of AdmissionOutcomes.
	Outcome  reason.Reason
	Findings []Finding
	// NewPins are those of the pins in Records whose snapshots must exist before the
	// answer; see Unpin.
	NewPins Pins
}

// annotationRoom is how large an object's annotations may be with ours, in bytes, keys
// and values. The API server takes 256 KiB (TotalAnnotationSizeLimitB in apimachinery's
// validation); 16 KiB of these are left to others, who write after us. The Deployment
// controller copies a Deployment's annotations to its ReplicaSets and adds up to
// 2.2 KiB, most of it deployment.kubernetes.io/revision-history: if that did not fit,
// the Deployment could not be scaled. CNI plugins annotate each Pod, which has
// the template's annotations: if that did not fit, it could not start.
const annotationRoom = (256 - 16) << 10

// Decide is the table "What the webhook does" of the design. The ring may be
// nil only when the admission needs no content.
func Decide(ring *Ring, a Admission) Decision {
	if a.accepts() {
		a.Held.Declined, a.Sent.Declined = "", ""
	}
	a.Fresh = a.Fresh && !a.UndoUnknown
	decision := decide(ring, &a)
	if decision.NewPins != nil && templateBytes(&a, decision.Records) > annotationRoom {
		decision.dropPins(noRoom)
	}
	stamps, baseline := oversize(&a, decision.Records)
	declined := decision.Records.Declined != a.Held.Declined && workloadBytes(&a, Records{Declined: decision.Records.Declined}) > annotationRoom
	if stamps || baseline || declined {
		decision.Outcome = reason.TooLarge
		// First: a response has room for some warnings only.
		decision.Findings = append([]Finding{{Reason: reason.TooLarge}}, decision.Findings...)
		if a.Asker != Anyone && !a.TemplateChanged {
			decision.Records = a.Held
		} else { // only what does not fit goes: stamps taken from an unchanged template would roll it
			if stamps {
				decision.Records.Stamps, decision.Records.Pins = nil, nil
			}
			if baseline {
				decision.Records.Baseline = nil
			}
			if declined {
				decision.Records.Declined = a.Held.Declined
			}
		}
	}
	for _, fault := range a.Policy.Faults {
		decision.Findings = append(decision.Findings, fault.Finding())
	}
	if a.Policy.PinFault != nil {
		decision.Findings = append(decision.Findings, Finding{Reason: reason.PinUnreadable, Text: a.Policy.PinFault.Error()})
	}
	if a.AgainUnknown {
		decision.Findings = append(decision.Findings, Finding{Reason: reason.AgainUnknown})
	}
	if why := a.foreign(decision.Records); why != reason.NoReason {
		decision.Findings = append(decision.Findings, Finding{Reason: why})
	}
	return decision
}

func decide(ring *Ring, a *Admission) Decision {
	switch {
	case a.undoes(): // first: an undo of our own roll changes annotations alone
		return undo(ring, a)
	case a.Again: // its pods would be replaced if another stamp were written
		if !a.Fresh {
			return Decision{Records: a.Held, Outcome: reason.Kept, Findings: []Finding{{Reason: reason.NotProvenFresh}}}
		}
		return record(ring, a, ring.Review(a.Namespace, &a.Policy, a.Selections, a.Held, a.Content))
	case a.Create || a.TemplateChanged:
		return stampAll(ring, a)
	case a.Asker == Anyone:
		if a.Sent.Equal(a.Held) {
			return Decision{Records: a.Held, Outcome: reason.Kept}
		}
		return Decision{Records: a.Held, Outcome: reason.Restored}
	case !a.Fresh:
		return Decision{Records: a.Held, Outcome: reason.NotProvenFresh, Findings: []Finding{{Reason: reason.NotProvenFresh}}}
	}
	review := ring.Review(a.Namespace, &a.Policy, a.Selections, a.Held, a.Content)
	misled := ring.Misled(a.Namespace, a.Selections, a.Held, a.Content, a.SnapshotOf)
	review.Untrue = append(review.Untrue, misled...)
	if a.Asker != Roller || len(review.Untrue) == 0 {
		decision := record(ring, a, review)
		if a.Asker == Roller && len(review.Declined) > 0 {
			decision.Outcome = reason.OnHold
		}
		return decision
	}
	free := review.MayRoll() && len(a.Policy.Faults) == 0
	if free && !a.Policy.Observe {
		return stampAll(ring, a, misled...)
	}
	decision := record(ring, a, review)
	decision.Outcome = reason.OnHold
	if free {
		decision.Outcome = reason.Observed
		decision.Findings = append(decision.Findings, Finding{Reason: reason.ObserveMode})
	}
	return decision
}

// record gives a baseline to every reference that has no comparable record,
// and touches nothing else.
func record(ring *Ring, a *Admission, review Review) Decision {
	decision := Decision{Records: a.Held, Outcome: reason.Kept, Findings: append(review.Missing, review.Faults...)}
	if a.Asker == Roller {
		for _, source := range review.Declined {
			decision.Findings = append(decision.Findings, Finding{Reason: reason.DeclinedKept, Source: source})
		}
	}
	if !review.Records() {
		return decision
	}
	decision.Outcome = reason.Recorded
	decision.Records.Declined = ring.declinedAnew(a)
	if len(review.ToRecord) == 0 {
		return decision
	}
	baseline := maps.Clone(a.Held.Baseline)
	if baseline == nil {
		baseline = map[Source]string{}
	}
	for _, s := range review.ToRecord {
		baseline[s.Source] = ring.Digest(a.Namespace, s, a.Content(s.Source))
	}
	for _, source := range review.Lost {
		decision.Findings = append(decision.Findings, Finding{Reason: reason.LostRecord, Source: source})
	}
	decision.Records.Baseline = baseline
	return decision
}

// foreign says what a request is told that carries annotations of ours which are neither
// what was stored nor what is stored now (a rollout undo, an exported manifest). A
// reinvocation carries the latter.
func (a *Admission) foreign(decided Records) reason.Reason {
	switch {
	case a.undoes(): // it is told source by source
	case a.UndoUnknown:
		return reason.UndoUnknown
	case a.UndoLost:
		return reason.UndoLost
	case a.UndoMixed:
		return reason.UndoMixed
	case others(a.Sent.Stamps, a.Held.Stamps, decided.Stamps) || others(a.Sent.Pins, a.Held.Pins, decided.Pins) ||
		others(a.Sent.Baseline, a.Held.Baseline, decided.Baseline) ||
		a.Sent.Declined != "" && a.Sent.Declined != a.Held.Declined && a.Sent.Declined != decided.Declined:
		return reason.ForeignStamps
	}
	return reason.NoReason
}

// others reports whether anything sent is neither held nor decided.
func others[K comparable](sent, held, decided map[K]string) bool {
	for key, value := range sent {
		if value != held[key] && value != decided[key] {
			return true
		}
	}
	return false
}

// oversize tells whether the stamps do not fit on the template, and whether the
// baseline does not fit on the workload. Stamps that stay where they are fit: they
// are stored, and it would roll the workload to take them away.
func oversize(a *Admission, records Records) (stamps, baseline bool) {
	written := a.Create || a.TemplateChanged || !maps.Equal(records.Stamps, a.Held.Stamps)
	stamps = written && len(records.Stamps) > 0 && templateBytes(a, records) > annotationRoom
	if records.Baseline == nil {
		return stamps, false
	}
	return stamps, workloadBytes(a, records) > annotationRoom
}

// templateBytes is the size of the template's annotations with some records.
func templateBytes(a *Admission, records Records) int {
	size := a.TemplateBytes
	for key, value := range records.OnTemplate() {
		size += len(key) + len(value)
	}
	return size
}

// workloadBytes is the size of the workload's own annotations with some records.
func workloadBytes(a *Admission, records Records) int {
	size := a.WorkloadBytes
	for key, value := range records.OnWorkload() {
		size += len(key) + len(value)
	}
	return size
}
