package pins

import (
	"context"
	"maps"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// RevisionsWithin bounds the read of revisions. The webhook has 1.9 s of the API server's 3 s for an answer.
const RevisionsWithin = 700 * time.Millisecond

// Update is an update of a workload, and what is known of it.
type Update struct {
	*checksum.Request
	*checksum.Facts
	Manager     string           // the field manager
	Object, Old *workload.Object // as requested, and as stored
	OldRaw      []byte           // Old as the API server sent it
	Log         func(context.Context) klog.Logger
}

// Undo returns whether an update brings the template back to one of its revisions, as kubectl rollout undo does. It
// reads revisions only for requests that may: those without a field manager that carry pins and change something.
// Whether the snapshots exist is found out by Snapshotted.
func (p *Pins) Undo(ctx context.Context, u *Update) checksum.Revision {
	sent := u.Sent.PinnedAt()
	if !u.mayUndo() || len(sent) == 0 {
		return checksum.NoRevision
	}
	ctx, cancel := context.WithTimeout(ctx, RevisionsWithin)
	defer cancel()
	selector, err := u.Old.Kind.Selector(u.OldRaw)
	var revisions []*workload.Revision
	if err == nil {
		revisions, err = p.Revisions.Of(ctx, u.Old.Kind, u.Namespace, selector, u.Old.UID)
	}
	if err != nil {
		u.Log(ctx).Info("Could not determine whether this is an undo; checksums and pins on record stay", "reason", err.Error())
		return checksum.UndoUnknown
	}
	elsewhere := false
	for _, revision := range revisions {
		switch {
		case !carries(&u.Sent, sent, revision):
		case !u.Object.Template.IsOf(revision):
			elsewhere = true
		default:
			return checksum.Undo
		}
	}
	if elsewhere && !sameOf(sent, &u.Sent, &u.Held) {
		return checksum.UndoMixed
	}
	return checksum.NoRevision
}

func (u *Update) mayUndo() bool {
	changes := u.Change != checksum.NoChange || !maps.Equal(u.Sent.Stamps, u.Held.Stamps) || !maps.Equal(u.Sent.Pins, u.Held.Pins)
	return u.Policy.Pin && u.Old.Kind.KeepsRevisions() && u.Change != checksum.Created && changes && u.Manager == ""
}

// carries reports whether a request sends the pins of a revision, and its stamps of the pinned sources. Other stamps
// are written anew in any case.
func carries(sent *checksum.Records, pins checksum.Pins, revision *workload.Revision) bool {
	has, err := checksum.RecordsIn(nil, revision.Template.Metadata.Annotations)
	return err == nil && sameOf(pins, sent, &has)
}

// sameOf reports whether two records have the same pins, and the same stamps of some pinned sources.
func sameOf(pins checksum.Pins, a, b *checksum.Records) bool {
	for source := range pins {
		key := checksum.StampKey(source)
		if value, ok := a.Stamps[key]; !ok || value != b.Stamps[key] {
			return false
		}
	}
	return a.PinnedAt().String() == b.PinnedAt().String()
}

// Snapshotted returns Undo if the snapshots that an undo goes back to exist, or can be made again because their
// sources hold the same content. It makes none, and returns those to make.
func (p *Pins) Snapshotted(ctx context.Context, u *Update, ring *checksum.Ring) (found checksum.Revision, gone checksum.Pins) {
	ctx, cancel := context.WithTimeout(ctx, RevisionsWithin)
	defer cancel()
	found, gone = checksum.Undo, checksum.Pins{}
	for source, pin := range u.Sent.PinnedAt() {
		content, err := p.Snapshots.Content(ctx, u.Namespace, pin.Snapshot, source)
		switch {
		case err != nil:
			u.Log(ctx).Info("A snapshot could not be read, so it is unknown whether this is an undo", "source", source.String(), "reason", err.Error())
			found = checksum.UndoUnknown
		case content != nil:
		case u.Content == nil || !ring.NamesSnapshot(u.Namespace, source, u.Content(source), pin.Snapshot):
			return checksum.UndoLost, nil
		default:
			gone[source] = pin
		}
	}
	return found, gone
}
