package webhook

import (
	"context"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Revisions tells which revisions a workload has, and what is stored of itself.
type Revisions interface {
	Stored
	// Of lists those that a workload controls at this moment; owner "": that nobody controls.
	// selector is the workload's own.
	Of(ctx context.Context, kind *workload.Kind, namespace, selector string, owner types.UID) ([]*workload.Revision, error)
	// HasPods reports whether there is a pod of a revision at this moment.
	HasPods(ctx context.Context, namespace, selector string, revision *workload.Revision) (bool, error)
}

// revisionsWithin bounds the question whether a request brings a revision back. With the proof that memory
// is fresh, and two seconds for snapshots, it stays below the three that an admission has.
const revisionsWithin = 700 * time.Millisecond

// undo finds out whether a request brings the template back to one of its revisions, as
// kubectl rollout undo does. Only a request is asked about that may: it names no field
// manager, carries pins, and would change something.
func (h *Handler) undo(ctx context.Context, request *admissionv1.AdmissionRequest, object *workload.Object, known *witness, admission *checksum.Admission) {
	sent := admission.Sent.PinnedAt()
	if !mayUndo(request, admission) || len(sent) == 0 {
		return
	}
	old := known.old
	ctx, cancel := context.WithTimeout(ctx, revisionsWithin)
	defer cancel()
	selector, err := old.Kind.Selector(request.OldObject.Raw)
	var revisions []*workload.Revision
	if err == nil {
		revisions, err = h.Revisions.Of(ctx, old.Kind, request.Namespace, selector, old.UID)
	}
	if err != nil {
		logOf(ctx, request).Info("It is not known whether this is an undo; checksums and pins on record stay", "reason", err.Error())
		admission.UndoUnknown = true
		return
	}
	elsewhere := false
	for _, revision := range revisions {
		if !carries(&admission.Sent, sent, revision) {
			continue
		}
		if object.Template.IsOf(revision) {
			lost := h.lost(ctx, request, known, sent)
			admission.Undo, admission.UndoLost = !lost, lost
			admission.MadeAt = func(source checksum.Source) time.Time {
				return h.Snapshots.MadeAt(request.Namespace, sent[source].Snapshot)
			}
			return
		}
		elsewhere = true
	}
	admission.UndoMixed = elsewhere && !sameOf(sent, &admission.Sent, &admission.Held)
}

func mayUndo(request *admissionv1.AdmissionRequest, a *checksum.Admission) bool {
	changes := a.TemplateChanged || !maps.Equal(a.Sent.Stamps, a.Held.Stamps) || !maps.Equal(a.Sent.Pins, a.Held.Pins)
	return a.Pinning && a.Policy.Pin && !a.Create && changes && fieldManager(request) == ""
}

// carries reports whether what a request sends is what a revision has: its pins, and the
// stamps of what was pinned. Other stamps are written anew anyway, ours of a moment ago too.
func carries(sent *checksum.Records, pins checksum.Pins, revision *workload.Revision) bool {
	has, err := checksum.RecordsIn(nil, revision.Template.Metadata.Annotations)
	return err == nil && sameOf(pins, sent, &has)
}

// sameOf reports whether two records say the same of pins and of what is pinned.
func sameOf(pins checksum.Pins, a, b *checksum.Records) bool {
	for source := range pins {
		key := checksum.StampKey(source)
		if value, ok := a.Stamps[key]; !ok || value != b.Stamps[key] {
			return false
		}
	}
	return a.PinnedAt().String() == b.PinnedAt().String()
}

// lost reports whether a snapshot that a request names is not there, or is not ours. One
// that somebody has deleted is made again if its source still holds the same.
func (h *Handler) lost(ctx context.Context, request *admissionv1.AdmissionRequest, known *witness, pins checksum.Pins) bool {
	if !isDryRun(request) && known.pins(ctx) {
		return len(h.Snapshots.EnsureAll(ctx, request.Namespace, namesOf(pins))) > 0
	}
	for source, pin := range pins {
		if content, err := h.Snapshots.Content(ctx, request.Namespace, pin.Snapshot, source); err != nil || content == nil {
			return true
		}
	}
	return false
}
