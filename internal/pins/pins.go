// Package pins keeps pods at the content that their template was stamped with: it finds undos, sees to it that
// snapshots exist, and gives new Pods the names of snapshots.
//
// pins.go has Pins, what an admission of a workload asks; undo.go finds out whether a request goes back to a
// revision. pods.go answers for new Pods, and package pinning says which fields of a Pod change. What pins mean
// for a decision stands in checksum.
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

// Archive gives what snapshots hold.
type Archive interface {
	// Content is what a snapshot holds that is ours, nil when there is none.
	Content(ctx context.Context, namespace, name string, of checksum.Source) (*checksum.Content, error)
}

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

// Revisions tells which revisions a workload has.
type Revisions interface {
	// Of lists those that a workload controls at this moment; owner "": that nobody controls.
	// selector is the workload's own.
	Of(ctx context.Context, kind *workload.Kind, namespace, selector string, owner types.UID) ([]*workload.Revision, error)
}

// Pins is what a process does that pins. Its fields do not change.
type Pins struct {
	Snapshots Snapshots
	Revisions Revisions
}

// Keeps reports whether a kind is one of those of group apps that make new Pods, and a
// revision, whenever their template's annotations change. Their Pods are pinned.
func Keeps(kind *workload.Kind) bool {
	return kind.Revisions != "" && !kind.Custom
}

// For is what the rules know of snapshots, for a workload of a kind.
func (p *Pins) For(namespace string, kind *workload.Kind) checksum.Snapshots {
	return known{p.Snapshots, namespace, kind}
}

// known implements checksum.Snapshots.
type known struct {
	snapshots Snapshots
	namespace string
	kind      *workload.Kind
}

func (k known) Pins() bool { return Keeps(k.kind) }

func (k known) Known(of checksum.Source, name string) *checksum.Content {
	return k.snapshots.Known(k.namespace, name, of)
}

func (k known) MadeAt(name string) time.Time { return k.snapshots.MadeAt(k.namespace, name) }

// Make sees to it that the snapshots of some pins exist, and returns which do not, and why: the fact
// checksum.Facts.Unmade.
func (p *Pins) Make(ctx context.Context, log func(context.Context) klog.Logger, namespace string, pins checksum.Pins) map[checksum.Source]reason.Reason {
	unmade := map[checksum.Source]reason.Reason{}
	for source, err := range p.Snapshots.EnsureAll(ctx, namespace, namesOf(pins)) {
		log(ctx).Info("A source is not pinned", "source", source.String(), "reason", err.Error())
		unmade[source] = archive.Reason(err)
	}
	return unmade
}

// Unproven is the fact checksum.Facts.Unmade of pins of which nothing but the request says that the workload
// pins: nothing is made for it.
func Unproven(pins checksum.Pins) map[checksum.Source]reason.Reason {
	unmade := make(map[checksum.Source]reason.Reason, len(pins))
	for source := range pins {
		unmade[source] = reason.NotPinned
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
