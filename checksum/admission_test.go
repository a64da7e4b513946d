package checksum_test

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// admissionCase is one admission as tests write it down: its Request and its Facts, each possibility for itself.
type admissionCase struct {
	Namespace                                string
	Create, TemplateChanged, AnnotationsOnly bool
	Asker                                    checksum.Asker // Anyone, Recorder or Roller
	Own, Accepts                             bool
	Again, AgainUnknown                      bool
	Undo, UndoLost, UndoMixed, UndoUnknown   bool
	Policy                                   checksum.Policy
	Selections                               []checksum.Selection
	References                               []checksum.Reference
	Held, Sent                               checksum.Records
	Content                                  func(checksum.Source) *checksum.Content
	Fresh, Pinning                           bool
	SnapshotOf                               func(of checksum.Source, name string) *checksum.Content
	MadeAt                                   func(checksum.Source) time.Time
	Unmade                                   map[checksum.Source]reason.Reason
	TemplateBytes, WorkloadBytes             int
}

func (a *admissionCase) request() *checksum.Request {
	request := &checksum.Request{Namespace: a.Namespace, Asker: a.Asker, Sent: a.Sent, TemplateBytes: a.TemplateBytes, WorkloadBytes: a.WorkloadBytes}
	switch {
	case a.Create:
		request.Change = checksum.Created
	case a.TemplateChanged && a.AnnotationsOnly:
		request.Change = checksum.AnnotationsChanged
	case a.TemplateChanged:
		request.Change = checksum.TemplateChanged
	}
	switch {
	case a.Own && a.Asker == checksum.Roller:
		request.Asker = checksum.OwnRoller
	case a.Own && a.Asker == checksum.Recorder:
		request.Asker = checksum.OwnRecorder
	case a.Accepts:
		request.Asker = checksum.Accepter
	}
	return request
}

func (a *admissionCase) facts() *checksum.Facts {
	facts := &checksum.Facts{
		Held: a.Held, Policy: a.Policy, References: a.References, Selections: a.Selections,
		Content: a.Content, Fresh: a.Fresh, Unmade: a.Unmade,
	}
	for revision, is := range map[checksum.Revision]bool{
		checksum.Orphaned: a.Again, checksum.OrphanUnknown: a.AgainUnknown, checksum.Undo: a.Undo,
		checksum.UndoLost: a.UndoLost, checksum.UndoMixed: a.UndoMixed, checksum.UndoUnknown: a.UndoUnknown,
	} {
		if is {
			facts.Revision = revision
		}
	}
	if a.Pinning || a.SnapshotOf != nil {
		facts.Snapshots = snapshots{a}
		facts.Policy.Pin = a.Pinning && a.Policy.Pin
	}
	return facts
}

func (a *admissionCase) NeedsContent() bool {
	return checksum.NeedsContent(a.request(), a.facts().Revision)
}

// decide is Decide of an admission.
func decide(ring *checksum.Ring, a admissionCase) checksum.Decision {
	return checksum.Decide(ring, a.request(), a.facts())
}

// snapshots are those of an admission.
type snapshots struct{ a *admissionCase }

func (s snapshots) Known(of checksum.Source, name string) *checksum.Content {
	if s.a.SnapshotOf == nil {
		return nil
	}
	return s.a.SnapshotOf(of, name)
}

func (s snapshots) MadeAt(name string) time.Time {
	for source, pin := range s.a.Sent.PinnedAt() {
		if pin.Snapshot == name && s.a.MadeAt != nil {
			return s.a.MadeAt(source)
		}
	}
	return time.Time{}
}
