package impact

import (
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Workload is one that may use what is edited.
type Workload struct {
	Ref workload.Ref
	// Served tells that it is opted in; else Why tells why not (checksum.Served).
	Served bool
	Why    reason.Reason
	// Policy is what counts for it, and what holds it: its own settings over those of its
	// Namespace over the flags.
	Policy checksum.Policy
	// References are what its pod template names, joined or not. Without those that no
	// container mounts, nothing is said of them.
	References []checksum.Reference
	// Unreadable tells that its pod template could not be read.
	Unreadable bool
	// Unprobed tells that no container of its pod template has a readiness probe.
	Unprobed bool
	Records  checksum.Records
	Status   workload.Status
}

// Edit is a source going from one content to another; nil is a source that does not exist.
type Edit struct {
	At      rollout.SourceRef
	Was, Is *checksum.Content
	// Immutable tells that what it held could not be changed (immutable: true).
	Immutable bool
}

// Question is what is to be foreseen.
type Question struct {
	// Edits are made at the same moment, Now.
	Edits []Edit
	Now   time.Time
	// Workloads are those that may use what is edited.
	Workloads []Workload
	Limits    rollout.Limits
	// CanRoll is how many workloads can roll in the whole cluster: the default budget is
	// a share of them.
	CanRoll int
	// Ring is of the keys under which records were made, Content what sources hold that
	// are not edited.
	Ring    *checksum.Ring
	Content func(rollout.SourceRef) *checksum.Content
}

// edit is the edit of a source, nil when it is not edited.
func (q *Question) edit(at rollout.SourceRef) *Edit {
	if i := slices.IndexFunc(q.Edits, func(e Edit) bool { return e.At == at }); i >= 0 {
		return &q.Edits[i]
	}
	return nil
}

// content is what a source holds after the edits.
func (q *Question) content(at rollout.SourceRef) *checksum.Content {
	if e := q.edit(at); e != nil {
		return e.Is
	}
	return q.Content(at)
}

// TakeAsRecorded supposes that what is on record of the edited sources is what they held
// before the edits, and that nobody has declined anything: so the answer tells nothing of what
// is on record.
func (q *Question) TakeAsRecorded() {
	for i := range q.Workloads {
		w := &q.Workloads[i]
		records := w.Records
		records.Declined = ""
		records.Stamps, records.Baseline = maps.Clone(records.Stamps), maps.Clone(records.Baseline)
		for _, selection := range checksum.Selections(w.References, w.Policy) {
			source := selection.Source
			e := q.edit(rollout.SourceRef{Namespace: w.Ref.Namespace, Source: source})
			if e == nil {
				continue
			}
			if value, recorded := records.Baseline[source]; recorded {
				records.Baseline[source] = q.Ring.Suppose(w.Ref.Namespace, selection, value, e.Was)
			}
			if value, stamped := records.Stamps[checksum.StampKey(source)]; stamped {
				records.Stamps[checksum.StampKey(source)] = q.Ring.Suppose(w.Ref.Namespace, selection, value, e.Was)
			}
		}
		w.Records = records
	}
}
