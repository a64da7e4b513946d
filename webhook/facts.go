package webhook

import (
	"context"
	"errors"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// facts are gathered for one request before the decision: its inputs, and what its effects and warnings need
// besides.
type facts struct {
	checksum.Facts
	ring         *checksum.Ring
	gone         checksum.Pins      // snapshots that an undo goes back to and that have to be made again
	orphan       *workload.Revision // revision that a creation adopts again; nil: none
	unreferenced []checksum.Finding // names in annotations of other products without a reference in the template
	unreadable   error              // why it is not known whether the workload can go back to an older revision
	warnings     []string
	stored       *storedWorkload
}

// service holds what makes a workload one that is served.
type service struct {
	foreign   *checksum.Foreign
	namespace checksum.Namespace
	unknown   error // why the Namespace could not be read, or nil
}

// serves returns NoReason if the workload is served, otherwise the outcome. A Namespace that does not opt the
// workload in is read live: it may have been labelled a moment ago. If it cannot be read, the workload is served.
func (h *Handler) serves(ctx context.Context, r *request) (by service, outcome reason.Reason) {
	candidate := r.candidate
	if why, declines := candidate.Declines(); declines {
		return by, why
	}
	by.foreign = r.object.Foreign(h.Dialects)
	candidate.Foreign = by.foreign
	by.namespace, by.unknown = h.Namespaces.Look(ctx, r.Namespace)
	if served, _ := checksum.Served(candidate, by.namespace); served {
		return by, reason.NoReason
	}
	live, err := h.Namespaces.Read(ctx, r.Namespace)
	if err != nil {
		by.unknown = err
		return by, reason.NoReason
	}
	by.namespace, by.unknown = live, nil
	_, outcome = checksum.Served(candidate, live)
	return by, outcome
}

// gather collects the inputs of the decision, and reads no more than the request needs. why is the reason of an
// error.
func (h *Handler) gather(ctx context.Context, r *request, by service) (f *facts, why reason.Reason, err error) {
	f = &facts{stored: &storedWorkload{h: h, r: r, namespace: by.namespace}, warnings: r.warnings}
	f.Held = r.held()
	f.Policy = h.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: r.object.Annotations},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: by.namespace.Settings},
	).Translated(by.foreign, func(kind checksum.Kind) []string { return h.Sources.Names(r.Namespace, kind) })
	left := h.findOrphan(ctx, r)
	defer left.end()
	update := pins.Update{Request: &r.Request, Facts: &f.Facts, Manager: r.manager, Object: r.object, Old: r.old, OldRaw: r.review.OldObject.Raw, Log: r.log}
	if h.Pins != nil {
		f.Policy.Pin = f.Policy.Pin && r.object.Kind.Pins()
		f.Snapshots, f.Revision = h.Pins.In(r.Namespace), h.Pins.Undo(ctx, &update)
	}
	if r.Asker == checksum.OwnReturner && f.Policy.Return {
		h.findBack(ctx, f, &update)
	}
	needsContent := checksum.NeedsContent(&r.Request, f.Revision)
	if needsContent || r.object.Annotations[checksum.OnlyAnnotation] != "" {
		if f.References, err = r.object.References(); err == nil {
			f.unreferenced = f.Policy.Unreferenced(f.References)
			f.warnings = append(f.warnings, checksum.Warnings(f.unreferenced)...)
		} else if needsContent {
			return f, reason.NoReason, err
		}
	}
	if needsContent {
		if why, err = h.content(ctx, r, f); err != nil {
			return f, why, err
		}
		if by.unknown != nil {
			r.log(ctx).Info("The policy of the Namespace could not be read; this admission rolls nothing", "reason", by.unknown.Error())
			f.Fresh = false
		}
	}
	if f.Revision == checksum.Undo {
		f.Revision, f.gone = h.Pins.Snapshotted(ctx, &update, f.ring)
	}
	if f.unreadable != nil {
		r.log(ctx).Info("The revisions of a workload that has failed could not be read; it does not go back yet", "reason", f.unreadable.Error())
		f.Fresh = false
	}
	h.adopt(ctx, r, left, f)
	return f, reason.NoReason, nil
}

// findBack finds the revision to which a workload that has failed goes back.
func (h *Handler) findBack(ctx context.Context, f *facts, u *pins.Update) {
	switch {
	case !u.Old.Kind.KeepsRevisions():
		f.NoReturn = reason.UnreturnedKind
	case !f.Policy.Pin || h.Pins == nil:
		f.NoReturn = reason.UnreturnedUnpinned
	default:
		f.Back, f.NoReturn, f.unreadable = h.Pins.Return(ctx, u)
	}
}

// content collects the content of the referenced sources.
func (h *Handler) content(ctx context.Context, r *request, f *facts) (why reason.Reason, err error) {
	f.warnings = append(f.warnings, checksum.Warnings(f.Policy.Unnameable(f.References))...)
	f.Selections = checksum.Selections(f.References, f.Policy)
	if err = h.readSources(ctx, r, f); err == nil {
		return reason.NoReason, nil
	}
	if why = reason.SourcesUnknown; errors.Is(err, errNoKey) {
		why = reason.NoDigestKey
	}
	return why, err
}
