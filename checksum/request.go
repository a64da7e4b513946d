package checksum

import (
	"time"

	"github.com/configstamp/configstamp/internal/reason"
)

// Request is a parsed admission request, as far as the rules need it. Nothing changes it afterwards.
type Request struct {
	Namespace string
	Asker     Asker
	Change    Change
	// Sent holds our annotations on the requested object.
	Sent Records
	// TemplateBytes and WorkloadBytes are the sizes, keys and values, of the annotations that are not ours.
	TemplateBytes, WorkloadBytes int
}

// RollsByOwnAccount reports whether our controller requests a rolling re-admission.
func (r *Request) RollsByOwnAccount() bool { return r.Change == NoChange && r.Asker == OwnRoller }

// Asker is the kind of client that sends a request, by its field manager and its account.
type Asker int

// The askers. An account of ours counts only for what our controller asks for.
const (
	Anyone      Asker = iota // any other client
	Recorder                 // requests a recording re-admission, which can only write baselines
	Roller                   // requests a rolling re-admission
	Accepter                 // requests a rolling re-admission with the content that an undo has declined
	OwnRecorder              // as Recorder and Roller, but by our own service account
	OwnRoller
	// OwnReturner asks that a workload goes back to the content that it had before the one with which it has failed. Only
	// our own service account can ask this.
	OwnReturner
)

// The field managers by which a re-admission is known.
const (
	RollingManager   = "configstamp"
	RecordingManager = "configstamp-record"
	ReturnManager    = "configstamp-return"
)

// AskerOf returns the asker of an update by its field manager. own reports whether the account is ours: see
// IsOwn.
func AskerOf(fieldManager string, own bool) Asker {
	switch {
	case fieldManager == RecordingManager && own:
		return OwnRecorder
	case fieldManager == RecordingManager:
		return Recorder
	case fieldManager == RollingManager && own, fieldManager == AcceptManager && own:
		return OwnRoller
	case fieldManager == ReturnManager && own:
		return OwnReturner
	case fieldManager == RollingManager:
		return Roller
	case fieldManager == AcceptManager:
		return Accepter
	}
	return Anyone
}

// Rolls reports whether a rolling re-admission is requested.
func (a Asker) Rolls() bool { return a == Roller || a == OwnRoller || a == Accepter }

// Own reports whether the client is our own service account.
func (a Asker) Own() bool { return a == OwnRecorder || a == OwnRoller || a == OwnReturner }

// Change is how a request changes the pod template, our own annotations aside.
type Change int

// The changes.
const (
	NoChange           Change = iota
	AnnotationsChanged        // of the template, annotations alone
	TemplateChanged
	Created // there is no stored object
)

// updates reports whether a stored template is changed.
func (c Change) updates() bool { return c == AnnotationsChanged || c == TemplateChanged }

// Facts are the inputs of a decision beside its request. All of them are gathered before it.
type Facts struct {
	// Held are the records of the stored object, or of the orphaned revision that a creation adopts.
	Held Records
	// Revision is whether the request brings a revision back.
	Revision Revision
	// Policy is the policy of the requested workload.
	Policy Policy
	// References are the references of the requested template, one for each place. Selections are those that count by
	// policy, one for each source: see Selections.
	References []Reference
	Selections []Selection
	// Content returns the content of a source, nil if it does not exist or is not reported. Fresh reports whether that
	// was proven to be its present content.
	Content func(Source) *Content
	Fresh   bool
	// Snapshots looks up snapshots; nil: this process pins nothing. Then Policy.Pin has no effect.
	Snapshots Snapshots
	// Back are the records of the older revision to which an OwnReturner goes back; nil: there is none, because of NoReturn.
	Back     *Records
	NoReturn string
	// Unmade are the NewPins of a decision without this fact whose snapshots do not exist, by source, with one of the
	// reasons of SnapshotResults; NotPinned if the workload pins by the word of the request alone.
	Unmade map[Source]reason.Reason
}

// Revision is how a request relates to the revisions of the workload's template.
type Revision int

// The relations. The first two after NoRevision are of creations, the others of updates.
const (
	NoRevision    Revision = iota
	Orphaned               // a revision without an owner has this template; Held are its records
	OrphanUnknown          // whether there is one could not be read in time
	// Undo brings back a revision of the workload's own, stamps and pins of the sources that were pinned there
	// included. The snapshots of Sent's pins exist, and are ours, or they can be made again.
	Undo
	UndoLost  // it would be an undo, but for a snapshot that is gone
	UndoMixed // it would be an undo, but for other differences, which another webhook may have made
	// UndoUnknown: the revisions, or their snapshots, could not be read or made in time. The records that the request
	// may go back to are kept.
	UndoUnknown
)

// Snapshots looks up the snapshots of a namespace, in memory alone.
type Snapshots interface {
	// Known returns the content of a snapshot of a source, by its name, nil if that is not known.
	Known(of Source, name string) *Content
	// MadeAt returns when a snapshot was made, zero if that is not known.
	MadeAt(name string) time.Time
}

// NeedsContent reports whether the decision depends on content. An update that changes no template and is no
// re-admission does not.
func NeedsContent(request *Request, revision Revision) bool {
	return request.Change != NoChange || request.Asker != Anyone || revision == Undo
}

// admission is one request with its facts.
type admission struct {
	Request
	Facts
}

// stamps reports whether the template is new, so that what it references is stamped.
func (a *admission) stamps() bool { return a.Change != NoChange }

// snapshotOf returns how to look up snapshots, nil if nothing is pinned.
func (a *admission) snapshotOf() func(of Source, name string) *Content {
	if a.Snapshots == nil {
		return nil
	}
	return a.Snapshots.Known
}
