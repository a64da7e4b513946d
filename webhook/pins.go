package webhook

import (
	"context"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
	"github.com/configstamp/configstamp/internal/workload"
)

// Snapshots makes snapshots, and reads them.
type Snapshots interface {
	Archive
	// EnsureAll sees to it, in a bounded time, that the snapshots of some sources are there,
	// by name, and gives an error for each source of which that failed.
	EnsureAll(ctx context.Context, namespace string, names map[checksum.Source]string) map[checksum.Source]error
	// Known is Content by memory alone: nil also where that does not know.
	Known(namespace, name string, of checksum.Source) *checksum.Content
	// MadeAt is when a snapshot was made, zero if that is not known.
	MadeAt(namespace, name string) time.Time
}

// keepsRevisions reports whether a kind is one of those of group apps that make new Pods, and a
// revision, whenever their template's annotations change. Their Pods are pinned.
func keepsRevisions(kind *workload.Kind) bool {
	return kind.Revisions != "" && !kind.Custom
}

// snapshotsOf is what the rules know of snapshots, for one request.
type snapshotsOf struct {
	Snapshots
	r *request
}

// Pins implements checksum.Snapshots.
func (s snapshotsOf) Pins() bool { return keepsRevisions(s.r.object.Kind) }

// Known implements checksum.Snapshots.
func (s snapshotsOf) Known(of checksum.Source, name string) *checksum.Content {
	return s.Snapshots.Known(s.r.Namespace, name, of)
}

// MadeAt implements checksum.Snapshots.
func (s snapshotsOf) MadeAt(name string) time.Time { return s.Snapshots.MadeAt(s.r.Namespace, name) }

// makeSnapshots sees to it that the snapshots of some pins exist, and returns which do not. A dry run makes none,
// and a review's word none either.
func (h *Handler) makeSnapshots(ctx context.Context, r *request, f *facts, pins checksum.Pins) (unmade map[checksum.Source]reason.Reason) {
	if len(pins) == 0 {
		return nil
	}
	unmade = map[checksum.Source]reason.Reason{}
	if !f.witness.pins(ctx) {
		for source := range pins {
			unmade[source] = reason.NotPinned
		}
		return unmade
	}
	if r.dryRun {
		return nil
	}
	for source, err := range h.Snapshots.EnsureAll(ctx, r.Namespace, namesOf(pins)) {
		r.log(ctx).Info("A source is not pinned", "source", source.String(), "reason", err.Error())
		unmade[source] = archive.Reason(err)
	}
	return unmade
}

func namesOf(pins checksum.Pins) map[checksum.Source]string {
	names := make(map[checksum.Source]string, len(pins))
	for source, pin := range pins {
		names[source] = pin.Snapshot
	}
	return names
}
