package checksum

import (
	"maps"
	"slices"
	"time"
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
	// Create: there is no stored object, and Held is empty.
	Create bool
	Asker  Asker
	// Account is whose the request is, Installation our own namespace.
	Account      Account
	Installation string
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
	// Undo tells that the request brings the template back to a revision of its own (stamps
	// and pins of the sources that were pinned there included), and that all snapshots of
	// Sent's pins are there, ours, and without a mark. MadeAt says when they were made, for
	// the warnings; nil, or zero: nobody knows.
	Undo   bool
	MadeAt func(Source) time.Time
	// UndoLost tells that it would be an undo, but for a snapshot that is gone. UndoMixed:
	// but for other differences, which somebody else's webhook may have made.
	UndoLost, UndoMixed bool
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
	return a.Create || a.TemplateChanged || a.Asker != Anyone
}

// Decision is what an object must carry of ours after its admission, and why.
type Decision struct {
	Records Records
	// Outcome is what the admission comes to, one of AdmissionOutcomes.
	Outcome  Reason
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
	decision := decide(ring, &a)
	if stamps, baseline := oversize(&a, decision.Records); stamps || baseline {
		decision.Outcome = TooLarge
		// First: a response has room for some warnings only.
		decision.Findings = append([]Finding{{Reason: TooLarge}}, decision.Findings...)
		if a.Asker != Anyone && !a.TemplateChanged {
			decision.Records = a.Held
		} else { // only what does not fit goes: stamps taken from an unchanged template would roll it
			if stamps {
				decision.Records.Stamps, decision.Records.Pins = nil, nil
			}
			if baseline {
				decision.Records.Baseline = nil
			}
		}
	}
	for _, fault := range a.Policy.Faults {
		decision.Findings = append(decision.Findings, fault.Finding())
	}
	if foreign(&a, decision.Records) {
		decision.Findings = append(decision.Findings, Finding{Reason: ForeignStamps})
	}
	return decision
}

func decide(ring *Ring, a *Admission) Decision {
	switch {
	case a.Create || a.TemplateChanged:
		return stampAll(ring, a)
	case a.Asker == Anyone:
		if a.Sent.Equal(a.Held) {
			return Decision{Records: a.Held, Outcome: Kept}
		}
		return Decision{Records: a.Held, Outcome: Restored}
	case a.Asker == Recorder && a.Account == ServiceAccount:
		return claim(ring, a)
	case !a.Fresh:
		return Decision{Records: stays(ring, a), Outcome: NotProvenFresh, Findings: []Finding{{Reason: NotProvenFresh}}}
	}
	review := ring.Review(a.Namespace, &a.Policy, a.Selections, a.Held, a.Content)
	if a.Asker == Roller && a.concernsOthers() && len(review.OtherKeys) > 0 && len(review.Untrue) == 0 {
		return leave(a, review)
	}
	if a.Asker != Roller || len(review.Untrue) == 0 {
		return record(ring, a, review)
	}
	free := review.MayRoll() && len(a.Policy.Faults) == 0
	if free && !a.Policy.Observe {
		return stampAll(ring, a)
	}
	decision := record(ring, a, review)
	decision.Outcome = OnHold
	if free {
		decision.Outcome = Observed
		decision.Findings = append(decision.Findings, Finding{Reason: ObserveMode})
	}
	return decision
}

// stampAll stamps every reference with what is true now. Where that is not
// proven, what is on record stays, if it covers what is referenced now: at worst
// the controller finds it untrue, and no change is lost. A value on record
// that still verifies stays as it is written, under whatever key. What is
// missing goes unstamped, as does what nobody reports: its first content will be
// the baseline.
func stampAll(ring *Ring, a *Admission) Decision {
	decision := Decision{Records: Records{Stamps: map[string]string{}}, Outcome: Stamped}
	for _, s := range a.Selections {
		held, recorded := a.Held.Of(s.Source)
		content := a.Content(s.Source)
		s = s.of(content)
		decision.Findings = append(decision.Findings, s.faults(content)...)
		if recorded && !a.Fresh && !s.HoldOnly && s.covers(held) {
			decision.Records.Stamps[StampKey(s.Source)] = held
			continue
		}
		switch ring.assess(a.Namespace, &s, held, recorded, content) {
		case Missing:
			if !s.Source.comesByItself() {
				decision.Findings = append(decision.Findings, s.missingFinding(content))
			}
		case True:
			if !s.HoldOnly {
				decision.Records.Stamps[StampKey(s.Source)] = held
			}
		case Unreported:
			if recorded {
				decision.Records.Stamps[StampKey(s.Source)] = held
			}
		default:
			decision.Records.Stamps[StampKey(s.Source)] = ring.Digest(a.Namespace, s, content)
		}
	}
	if a.Policy.RestartUnstamped && len(decision.Records.Stamps) == 0 {
		// The pods start with nothing that counts, which is known: what counts later
		// is no reason to take the workload for one that was found without stamps.
		decision.Records.Baseline = map[Source]string{}
	}
	decision.Records.Pins = a.Held.pinsBeside(decision.Records.Stamps)
	decision.Records.Declined = a.Held.Declined
	return decision
}

// record gives a baseline to every reference that has no comparable record,
// and touches nothing else.
func record(ring *Ring, a *Admission, review Review) Decision {
	decision := Decision{Records: a.Held, Outcome: Kept, Findings: append(review.Missing, review.Faults...)}
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
		decision.Findings = append(decision.Findings, Finding{Reason: LostRecord, Source: source})
	}
	decision.Records.Baseline = baseline
	decision.Outcome = Recorded
	return decision
}

// Review is the state of all references of one workload.
type Review struct {
	// Untrue are the sources whose content has changed since it was recorded.
	Untrue []Source
	// ToRecord are the selections that have no comparable record for them.
	ToRecord []Selection
	// Lost are those of ToRecord that had a record which cannot be compared.
	Lost []Source
	// OtherKeys are the ids of keys that values of Lost were made with, and that the
	// ring does not hold: they are lost, or another installation's.
	OtherKeys []string
	// Missing says which required sources and keys are not there, Faults which
	// settings of sources cannot be read.
	Missing, Faults []Finding
}

// MayRoll reports whether nothing is missing and everything could be read, the
// workload's own policy aside.
func (r *Review) MayRoll() bool { return len(r.Missing) == 0 && len(r.Faults) == 0 }

// Review assesses every reference of a workload.
func (r *Ring) Review(namespace string, policy *Policy, selections []Selection, held Records, contentOf func(Source) *Content) Review {
	var review Review
	for _, s := range selections {
		value, recorded := held.Of(s.Source)
		content := contentOf(s.Source)
		s = s.of(content)
		review.Faults = append(review.Faults, s.faults(content)...)
		switch r.assess(namespace, &s, value, recorded, content) {
		case Untrue:
			review.Untrue = append(review.Untrue, s.Source)
		case Missing:
			review.Missing = append(review.Missing, s.missingFinding(content))
		case Unverifiable:
			review.Lost = append(review.Lost, s.Source)
			if id, unknown := r.UnknownKey(value); unknown && !slices.Contains(review.OtherKeys, id) {
				review.OtherKeys = append(review.OtherKeys, id)
			}
			review.ToRecord = append(review.ToRecord, s)
		case Unrecorded:
			// A new workload's pods are the first to report.
			if policy.RestartUnstamped && held.empty() && !s.Source.Kind.reported() {
				review.Untrue = append(review.Untrue, s.Source)
			} else {
				review.ToRecord = append(review.ToRecord, s)
			}
		case Reselected:
			review.ToRecord = append(review.ToRecord, s)
		case True, Unreported:
		}
	}
	return review
}

// faults tells which settings of a source that counts cannot be read.
func (s Selection) faults(content *Content) []Finding {
	if content == nil || content.Policy == nil || s.HoldOnly {
		return nil
	}
	return content.Policy.faults(s.Source)
}

func (s Selection) missingFinding(content *Content) Finding {
	if key, _ := s.Missing(content); key != "" {
		return Finding{Reason: MissingKey, Source: s.Source, Key: key}
	}
	return Finding{Reason: MissingSource, Source: s.Source}
}

// foreign reports whether the request carries annotations of ours that are
// neither what was stored nor what is stored now (a rollout undo, an exported
// manifest). A reinvocation carries the latter.
func foreign(a *Admission, decided Records) bool {
	for key, value := range a.Sent.Stamps {
		if value != a.Held.Stamps[key] && value != decided.Stamps[key] {
			return true
		}
	}
	for key, value := range a.Sent.Pins {
		if value != a.Held.Pins[key] && value != decided.Pins[key] {
			return true
		}
	}
	for source, value := range a.Sent.Baseline {
		if value != a.Held.Baseline[source] && value != decided.Baseline[source] {
			return true
		}
	}
	return a.Sent.Declined != "" && a.Sent.Declined != a.Held.Declined
}

// oversize tells whether the stamps do not fit on the template, and whether the
// baseline does not fit on the workload. Stamps that stay where they are fit: they
// are stored, and it would roll the workload to take them away.
func oversize(a *Admission, records Records) (stamps, baseline bool) {
	template := a.TemplateBytes
	for key, value := range records.OnTemplate() {
		template += len(key) + len(value)
	}
	written := a.Create || a.TemplateChanged || !maps.Equal(records.Stamps, a.Held.Stamps)
	stamps = written && len(records.Stamps) > 0 && template > annotationRoom
	if records.Baseline == nil {
		return stamps, false
	}
	workload := a.WorkloadBytes
	for key, value := range records.OnWorkload() {
		workload += len(key) + len(value)
	}
	return stamps, workload > annotationRoom
}
