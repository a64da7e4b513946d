// Package pins keeps pods at the content that their template was stamped with: it finds undos, makes snapshots, and
// gives new Pods the names of snapshots.
//
// pins.go has Pins, which an admission of a workload calls; undo.go finds out whether a request goes back to a
// revision. pods.go answers for new Pods, and package pinning says which fields of a Pod change. What pins mean
// for a decision stands in checksum.
//
// Pins.Make alone writes to the cluster: it creates snapshots. All other calls read.
package pins

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/snapshot/archive"
	"github.com/configstamp/configstamp/internal/workload"
)

// Archive reads snapshots.
type Archive interface {
	// Content returns what a snapshot of ours holds, nil if there is none of that name. On an error it is unknown.
	Content(ctx context.Context, namespace, name string, of checksum.Source) (*checksum.Content, error)
}

// Snapshots makes snapshots, and reads them.
type Snapshots interface {
	Archive
	// EnsureAll makes the snapshots of some sources, by name, that do not exist, in a bounded time. It returns an
	// error for each source whose snapshot does not exist afterwards.
	EnsureAll(ctx context.Context, namespace string, names map[checksum.Source]string) map[checksum.Source]error
	// Known is Content from memory alone. It is also nil if memory does not hold the snapshot.
	Known(namespace, name string, of checksum.Source) *checksum.Content
	// MadeAt returns when a snapshot was made, zero if that is not known.
	MadeAt(namespace, name string) time.Time
}

// Revisions reads the revisions of workloads.
type Revisions interface {
	// Of lists the revisions that a workload controls at this moment; owner "": those without a controller.
	// selector is the workload's own.
	Of(ctx context.Context, kind *workload.Kind, namespace, selector string, owner types.UID) ([]*workload.Revision, error)
}

// Pins is used by a process that pins. Its fields do not change.
type Pins struct {
	Snapshots Snapshots
	Revisions Revisions
}

// In returns what is known of the snapshots of a namespace.
func (p *Pins) In(namespace string) checksum.Snapshots { return known{p.Snapshots, namespace} }

// known implements checksum.Snapshots.
type known struct {
	snapshots Snapshots
	namespace string
}

func (k known) Known(of checksum.Source, name string) *checksum.Content {
	return k.snapshots.Known(k.namespace, name, of)
}

func (k known) MadeAt(name string) time.Time { return k.snapshots.MadeAt(k.namespace, name) }

// Make makes the snapshots of some pins that do not exist, and returns those that do not exist afterwards: the fact
// checksum.Facts.Unmade. Call it after the decision, for a workload that is known to pin, and not for a dry run.
func (p *Pins) Make(ctx context.Context, log func(context.Context) klog.Logger, namespace string, pins checksum.Pins) map[checksum.Source]reason.Reason {
	unmade := map[checksum.Source]reason.Reason{}
	for source, err := range p.Snapshots.EnsureAll(ctx, namespace, namesOf(pins)) {
		log(ctx).Info("A source is not pinned", "source", source.String(), "reason", err.Error())
		unmade[source] = archive.Reason(err)
	}
	return unmade
}

// Unproven returns the fact checksum.Facts.Unmade for a workload that pins by the word of its request alone: no
// snapshot is made for it.
func Unproven(pins checksum.Pins) map[checksum.Source]reason.Reason {
	unmade := make(map[checksum.Source]reason.Reason, len(pins))
	for source := range pins {
		unmade[source] = reason.NotPinned
	}
	return unmade
}

// NoUndo returns what an undo is of which some snapshots could not be made, for the reasons that Make returns.
func NoUndo(unmade map[checksum.Source]reason.Reason) checksum.Revision {
	for _, why := range unmade {
		if why != reason.SnapshotFailed {
			return checksum.UndoLost
		}
	}
	return checksum.UndoUnknown
}

func namesOf(pins checksum.Pins) map[checksum.Source]string {
	names := make(map[checksum.Source]string, len(pins))
	for source, pin := range pins {
		names[source] = pin.Snapshot
	}
	return names
}
