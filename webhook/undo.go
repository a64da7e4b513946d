package webhook

import (
	"context"
	"maps"
	"time"

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
func (h *Handler) undo(ctx context.Context, r *request, f *facts) checksum.Revision {
	sent := r.Sent.PinnedAt()
	if !r.mayUndo(f) || len(sent) == 0 {
		return checksum.NoRevision
	}
	ctx, cancel := context.WithTimeout(ctx, revisionsWithin)
	defer cancel()
	selector, err := r.old.Kind.Selector(r.review.OldObject.Raw)
	var revisions []*workload.Revision
	if err == nil {
		revisions, err = h.Revisions.Of(ctx, r.old.Kind, r.Namespace, selector, r.old.UID)
	}
	if err != nil {
		r.log(ctx).Info("It is not known whether this is an undo; checksums and pins on record stay", "reason", err.Error())
		return checksum.UndoUnknown
	}
	elsewhere := false
	for _, revision := range revisions {
		switch {
		case !carries(&r.Sent, sent, revision):
		case !r.object.Template.IsOf(revision):
			elsewhere = true
		case h.lost(ctx, r, f, sent):
			return checksum.UndoLost
		default:
			return checksum.Undo
		}
	}
	if elsewhere && !sameOf(sent, &r.Sent, &f.Held) {
		return checksum.UndoMixed
	}
	return checksum.NoRevision
}

func (r *request) mayUndo(f *facts) bool {
	changes := r.Change != checksum.NoChange || !maps.Equal(r.Sent.Stamps, f.Held.Stamps) || !maps.Equal(r.Sent.Pins, f.Held.Pins)
	return f.Snapshots != nil && f.Snapshots.Pins() && f.Policy.Pin && r.Change != checksum.Created && changes && r.manager == ""
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
func (h *Handler) lost(ctx context.Context, r *request, f *facts, pins checksum.Pins) bool {
	if !r.dryRun && f.witness.pins(ctx) {
		return len(h.Snapshots.EnsureAll(ctx, r.Namespace, namesOf(pins))) > 0
	}
	for source, pin := range pins {
		if content, err := h.Snapshots.Content(ctx, r.Namespace, pin.Snapshot, source); err != nil || content == nil {
			return true
		}
	}
	return false
}
