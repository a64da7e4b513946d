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
	// Believed reports whether snapshots may be made for it: it is no dry run, and not the request alone says
	// that the workload pins.
	Believed func(context.Context) bool
	Log      func(context.Context) klog.Logger
}

// Undo finds out whether an update brings the template back to one of its revisions, as
// kubectl rollout undo does. Only a request is asked about that may: it names no field
// manager, carries pins, and would change something.
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
		u.Log(ctx).Info("It is not known whether this is an undo; checksums and pins on record stay", "reason", err.Error())
		return checksum.UndoUnknown
	}
	elsewhere := false
	for _, revision := range revisions {
		switch {
		case !carries(&u.Sent, sent, revision):
		case !u.Object.Template.IsOf(revision):
			elsewhere = true
		case p.lost(ctx, u, sent):
			return checksum.UndoLost
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
	return Keeps(u.Old.Kind) && u.Policy.Pin && u.Change != checksum.Created && changes && u.Manager == ""
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
func (p *Pins) lost(ctx context.Context, u *Update, pins checksum.Pins) bool {
	if u.Believed(ctx) {
		return len(p.Snapshots.EnsureAll(ctx, u.Namespace, namesOf(pins))) > 0
	}
	for source, pin := range pins {
		if content, err := p.Snapshots.Content(ctx, u.Namespace, pin.Snapshot, source); err != nil || content == nil {
			return true
		}
	}
	return false
}
