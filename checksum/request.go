package checksum

import (
	"time"

	"github.com/configstamp/configstamp/internal/reason"
)

// Request is what an admission request says, parsed once. Nothing changes it afterwards.
type Request struct {
	Namespace string
	Asker     Asker
	Change    Change
	// Sent is what the object of the request carries of ours.
	Sent Records
	// TemplateBytes and WorkloadBytes are the sizes, keys and values, of the annotations that are not ours.
	TemplateBytes, WorkloadBytes int
}

// RollsByOwnAccount reports whether our controller asks for a roll, for certain.
func (r *Request) RollsByOwnAccount() bool { return r.Change == NoChange && r.Asker == OwnRoller }

// Asker is the client that sends a request, as far as that matters: by its field manager, and by its account.
type Asker int

// The askers. An account of ours counts only for what our controller asks for.
const (
	Anyone      Asker = iota // any client but these
	Recorder                 // asks for a recording re-admission, which can only write baselines
	Roller                   // asks for a rolling re-admission
	Accepter                 // so does this one, and takes what an undo has declined
	OwnRecorder              // so does our own account, for certain
	OwnRoller
)

// The field managers by which a re-admission is known.
const (
	RollingManager   = "configstamp"
	RecordingManager = "configstamp-record"
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
	case fieldManager == RollingManager:
		return Roller
	case fieldManager == AcceptManager:
		return Accepter
	}
	return Anyone
}

// Rolls reports whether a rolling re-admission is asked for.
func (a Asker) Rolls() bool { return a == Roller || a == OwnRoller || a == Accepter }

// Own reports whether our own account asks, for certain.
func (a Asker) Own() bool { return a == OwnRecorder || a == OwnRoller }

// Change is what a request does to the pod template, our own annotations aside.
type Change int

// The changes.
const (
	NoChange           Change = iota
	AnnotationsChanged        // nothing of the template but annotations
	TemplateChanged
	Created // there is no stored object
)

// updates reports whether a stored template is changed.
func (c Change) updates() bool { return c == AnnotationsChanged || c == TemplateChanged }

// Facts are what an admission depends on beside its request. They are gathered before it is decided.
type Facts struct {
	// Held is on record in the stored object, or in the revision that a creation brings back.
	Held Records
	// Revision is whether the request brings a revision back.
	Revision Revision
	// Policy is what counts and what holds for the requested workload.
	Policy Policy
	// References are what the requested template names, each place for itself. Selections are the same by
	// source, as the policy has it: see Selections.
	References []Reference
	Selections []Selection
	// Content returns what a source holds, nil if it does not exist or is not reported. Fresh reports
	// whether that was proven to be what the API server holds now.
	Content func(Source) *Content
	Fresh   bool
	// Snapshots knows of snapshots; nil: this process pins nothing.
	Snapshots Snapshots
	// Unmade are the snapshots that a decision without this fact named as new, and that are not made, by
	// source, with one of the reasons of SnapshotResults; NotPinned if nothing but the request says that the
	// workload pins.
	Unmade map[Source]reason.Reason
}

// Revision is whether a request brings back a revision of the workload's template.
type Revision int

// The ways. The first two are of creations, the others of updates.
const (
	NoRevision  Revision = iota
	LeftBehind           // a revision that nobody controls has this template; Held is on record there
	LeftUnknown          // that could not be found out in time
	// Undo brings back a revision of the workload's own, stamps and pins of the sources that were pinned there
	// included. All snapshots of Sent's pins are there, ours, and without a mark.
	Undo
	UndoLost  // it would be an undo, but for a snapshot that is gone
	UndoMixed // it would be an undo, but for other differences, which another webhook may have made
	// UndoUnknown: the revisions could not be read in time. Then nothing that the request may go back to is
	// given up.
	UndoUnknown
)

// Snapshots knows of the snapshots of a namespace, by memory alone.
type Snapshots interface {
	// Pins reports whether workloads of this kind are pinned.
	Pins() bool
	// Known returns what a snapshot of a source holds, by its name, nil if that is not known.
	Known(of Source, name string) *Content
	// MadeAt returns when a snapshot was made, zero if that is not known.
	MadeAt(name string) time.Time
}

// NeedsContent reports whether the rules look at content at all: an update
// that changes no template and asks for nothing is answered without it.
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

// pinning reports whether the process pins, and workloads of this kind.
func (a *admission) pinning() bool { return a.Snapshots != nil && a.Snapshots.Pins() }

// snapshotOf returns how to look up snapshots, nil if nothing is pinned.
func (a *admission) snapshotOf() func(of Source, name string) *Content {
	if a.Snapshots == nil {
		return nil
	}
	return a.Snapshots.Known
}
