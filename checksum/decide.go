package checksum

import (
	"maps"
	"slices"

	"github.com/configstamp/configstamp/internal/reason"
)

// Decision is the records that an object must have after its admission, and why.
type Decision struct {
	Records Records
	// Outcome is one of AdmissionOutcomes.
	Outcome  reason.Reason
	Findings []Finding
	// NewPins are the pins in Records whose snapshots must exist before the answer. If one cannot be made, that is a
	// fact, and the decision is another one: see Facts.Unmade.
	NewPins Pins
}

// annotationRoom bounds an object's annotations with ours, in bytes of keys and values. The API server takes 256 KiB
// (TotalAnnotationSizeLimitB in apimachinery's validation); 16 KiB of these are left to clients that write after us. The
// Deployment controller copies a Deployment's annotations to its ReplicaSets and adds up to 2.2 KiB, most of it
// deployment.kubernetes.io/revision-history: if that did not fit, the Deployment could not be scaled. CNI plugins
// annotate each Pod, which has the template's annotations: if that did not fit, it could not start.
const annotationRoom = (256 - 16) << 10

// Decide is the table "What the webhook does" of the design. The ring may be
// nil only if the admission needs no content.
func Decide(ring *Ring, request *Request, facts *Facts) Decision {
	a := &admission{*request, *facts}
	if a.accepts() {
		a.Held.Declined, a.Sent.Declined = "", ""
	}
	a.Fresh = a.Fresh && a.Revision != UndoUnknown
	decision := a.decide(ring)
	if len(decision.NewPins) > 0 && templateBytes(a, decision.Records) > annotationRoom {
		decision.dropPins(slices.Collect(maps.Keys(decision.NewPins)), Finding{Reason: reason.NotPinned, Text: reason.UnpinnedTooLarge})
	}
	decision.fit(a)
	decision.Findings = append(decision.Findings, a.amiss(decision.Records)...)
	decision.dropUnmade(a)
	return decision
}

// decide is the table, before it is known whether the decision fits.
func (a *admission) decide(ring *Ring) Decision {
	switch {
	case a.Asker == OwnReturner && a.Change == NoChange && !a.Policy.Return: // the controller does not know it yet
		return Decision{Records: a.Held, Outcome: reason.Kept}
	case a.Asker == OwnReturner && a.Change == NoChange:
		return giveBack(ring, a)
	case a.undoes(): // first: an undo of our own roll changes annotations alone
		return undo(ring, a)
	case a.Revision == Orphaned && !a.Fresh: // its pods would be replaced if another stamp were written
		return Decision{Records: a.Held, Outcome: reason.Kept, Findings: []Finding{{Reason: reason.NotProvenFresh}}}
	case a.Revision == Orphaned: // the creation restarts nothing
	case a.stamps():
		return stampAll(ring, a)
	case a.Asker == Anyone && a.Sent.Equal(a.Held):
		return Decision{Records: a.Held, Outcome: reason.Kept}
	case a.Asker == Anyone:
		return Decision{Records: a.Held, Outcome: reason.Restored}
	case !a.Fresh:
		return Decision{Records: a.Held, Outcome: reason.NotProvenFresh, Findings: []Finding{{Reason: reason.NotProvenFresh}}}
	}
	review := ring.Review(a.Namespace, &a.Policy, a.Selections, a.Held, a.Content)
	misled := ring.Misled(a.Namespace, a.Selections, a.Held, a.Content, a.snapshotOf())
	rolls := a.Asker.Rolls() && len(review.Untrue)+len(misled) > 0
	free := review.MayRoll() && len(a.Policy.Faults) == 0
	if rolls && free && !a.Policy.Observe {
		return stampAll(ring, a, misled...)
	}
	decision := record(ring, a, review)
	switch {
	case rolls && free:
		decision.Outcome = reason.Observed
		decision.Findings = append(decision.Findings, Finding{Reason: reason.ObserveMode})
	case rolls, a.Asker.Rolls() && len(review.Declined) > 0:
		decision.Outcome = reason.OnHold
	}
	return decision
}

// fit removes from a decision what does not fit.
func (d *Decision) fit(a *admission) {
	stamps, baseline := oversize(a, d.Records)
	declined := d.Records.Declined != a.Held.Declined && workloadBytes(a, Records{Declined: d.Records.Declined}) > annotationRoom
	if !stamps && !baseline && !declined {
		return
	}
	d.Outcome = reason.TooLarge
	// First, as a response has room for a few warnings only.
	d.Findings = append([]Finding{{Reason: reason.TooLarge}}, d.Findings...)
	if a.Asker != Anyone && !a.Change.updates() {
		d.Records, d.NewPins = a.Held, nil
		return
	}
	// Nothing else is removed: without its stamps an unchanged template would roll.
	if stamps {
		d.Records.Stamps, d.Records.Pins, d.NewPins = nil, nil, nil
	}
	if baseline {
		d.Records.Baseline = nil
	}
	if declined {
		d.Records.Declined = a.Held.Declined
	}
}

// amiss returns the findings that are about no single source.
func (a *admission) amiss(decided Records) (findings []Finding) {
	for _, fault := range a.Policy.Faults {
		findings = append(findings, fault.Finding())
	}
	if a.Policy.PinFault != nil {
		findings = append(findings, Finding{Reason: reason.PinUnreadable, Text: a.Policy.PinFault.Error()})
	}
	if a.Revision == OrphanUnknown {
		findings = append(findings, Finding{Reason: reason.AgainUnknown})
	}
	if why := a.foreign(decided); why != reason.NoReason {
		findings = append(findings, Finding{Reason: why})
	}
	return findings
}

// record writes a baseline for every reference without a comparable record, and nothing else.
func record(ring *Ring, a *admission, review Review) Decision {
	decision := Decision{Records: a.Held, Outcome: reason.Kept, Findings: append(review.Missing, review.Faults...)}
	if a.Asker.Rolls() {
		for _, source := range review.Declined {
			decision.Findings = append(decision.Findings, Finding{Reason: reason.DeclinedKept, Source: source})
		}
	}
	if !review.Records() {
		return decision
	}
	decision.Outcome = reason.Recorded
	if len(review.ToDecline) > 0 {
		decision.Records.Declined = review.declined.String()
	}
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

// foreign returns the finding for a request with annotations of ours that are neither the stored ones nor those
// decided, such as those of a rollout undo or an exported manifest. A reinvocation has the decided ones.
func (a *admission) foreign(decided Records) reason.Reason {
	switch {
	case a.undoes(): // there is a finding for each source
	case a.Revision == UndoUnknown:
		return reason.UndoUnknown
	case a.Revision == UndoLost:
		return reason.UndoLost
	case a.Revision == UndoMixed:
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

// oversize returns whether the stamps do not fit on the template, and whether the baseline does not fit on the
// workload. Stamps that stay do fit: they are stored, and to remove them would roll the workload.
func oversize(a *admission, records Records) (stamps, baseline bool) {
	written := a.stamps() || !maps.Equal(records.Stamps, a.Held.Stamps)
	stamps = written && len(records.Stamps) > 0 && templateBytes(a, records) > annotationRoom
	if records.Baseline == nil {
		return stamps, false
	}
	return stamps, workloadBytes(a, records) > annotationRoom
}

// templateBytes returns the size of the template's annotations with some records.
func templateBytes(a *admission, records Records) int {
	size := a.TemplateBytes
	for key, value := range records.OnTemplate() {
		size += len(key) + len(value)
	}
	return size
}

// workloadBytes returns the size of the workload's own annotations with some records.
func workloadBytes(a *admission, records Records) int {
	size := a.WorkloadBytes
	for key, value := range records.OnWorkload() {
		size += len(key) + len(value)
	}
	return size
}
