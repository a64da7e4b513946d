package webhook

import (
	"context"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

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

// pins is what the request alone says of an admission where the process pins.
func (h *Handler) pins(request *admissionv1.AdmissionRequest, object, old *workload.Object, admission *checksum.Admission) {
	admission.Pinning = h.Snapshots != nil && keepsRevisions(object.Kind)
	if h.Snapshots != nil {
		admission.SnapshotOf = func(of checksum.Source, name string) *checksum.Content {
			return h.Snapshots.Known(request.Namespace, name, of)
		}
	}
	admission.Accepts = !admission.Create && fieldManager(request) == checksum.AcceptManager
	admission.AnnotationsOnly = admission.TemplateChanged && object.Template.SameButAnnotations(&old.Template)
}

// makeSnapshots sees to it that the snapshots exist that a decision names, and takes back
// the pins of those that could not be made. A dry run makes none, and a review's word none either.
func (h *Handler) makeSnapshots(ctx context.Context, request *admissionv1.AdmissionRequest, known *witness, decision *checksum.Decision) {
	switch {
	case len(decision.NewPins) == 0:
		return
	case !known.pins(ctx):
		decision.PinLater()
		return
	case isDryRun(request):
		return
	}
	unmade := map[checksum.Source]reason.Reason{}
	for source, err := range h.Snapshots.EnsureAll(ctx, request.Namespace, namesOf(decision.NewPins)) {
		logOf(ctx, request).Info("A source is not pinned", "source", source.String(), "reason", err.Error())
		unmade[source] = archive.Reason(err)
	}
	if len(unmade) > 0 {
		decision.Unpin(unmade)
	}
}

func namesOf(pins checksum.Pins) map[checksum.Source]string {
	names := make(map[checksum.Source]string, len(pins))
	for source, pin := range pins {
		names[source] = pin.Snapshot
	}
	return names
}

// announcePins puts into an event what the workload's owners should hear of even if somebody
// else sent the request: an undo and who asked for it, declined content that is taken after
// all, and, now and then, what could not be pinned.
func (h *Handler) announcePins(ctx context.Context, request *admissionv1.AdmissionRequest, known *witness, findings []checksum.Finding) {
	if h.Announce == nil || isDryRun(request) || request.Operation == admissionv1.Create {
		return
	}
	sentences := map[reason.Reason][]string{}
	for _, finding := range findings {
		sentences[finding.Reason] = append(sentences[finding.Reason], finding.String())
	}
	for _, why := range []reason.Reason{reason.UndoTaken, reason.DeclinedCleared, reason.NotPinned} {
		of := sentences[why]
		if len(of) == 0 || why == reason.NotPinned && !h.unpinned.again(known.old.UID, h.now()) || !known.serves(ctx) {
			continue
		}
		h.Announce(workloadOf(request, known.stored.UID), why, clientOf(request)+": "+strings.Join(of[:min(len(of), maxAnnounced)], "; "))
	}
}

// maxAnnounced bounds the sentences of one event.
const maxAnnounced = 3
