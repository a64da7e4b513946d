package webhook

import (
	"context"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/workload"
)

// storedWorkload reads the workload of a request from the API server before the webhook has a side effect, a
// snapshot or an event: anyone who can reach the port can forge a review. Requests without side effects do not
// read it, nor do snapshots in a Namespace that is pinned itself.
type storedWorkload struct {
	h         *Handler
	r         *request
	namespace checksum.Namespace

	isRead bool
	object *workload.Object // nil: there is none with the UID of the request, or it could not be read in time
}

// pins reports whether the workload is served and pinned, by its Namespace or by the stored workload. A creation
// has no stored workload.
func (w *storedWorkload) pins(ctx context.Context) bool {
	says := checksum.Level{Origin: checksum.OfNamespace, Annotations: w.namespace.Settings}
	if served, _ := checksum.Served(checksum.Candidate{}, w.namespace); served && w.h.Policy.With(says).Pin {
		return true
	}
	return w.serves(ctx) && w.h.Policy.With(checksum.Level{Origin: checksum.OfWorkload, Annotations: w.object.Annotations}, says).Pin
}

// serves reports whether the stored workload has the UID of the request, and is served.
func (w *storedWorkload) serves(ctx context.Context) bool {
	if !w.isRead {
		w.isRead, w.object = true, w.read(ctx)
	}
	if w.object == nil {
		return false
	}
	served, _ := checksum.Served(checksum.Candidate{
		Inject: w.object.Labels[checksum.InjectLabel], Foreign: w.object.Foreign(w.h.Dialects), Owned: w.object.RolledByOwner(w.h.Kinds),
	}, w.namespace)
	return served
}

// read returns the stored workload, nil if there is none with the UID of the request, or if it could not be read
// in time.
func (w *storedWorkload) read(ctx context.Context) *workload.Object {
	if w.r.Change == checksum.Created {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pins.StoredWithin)
	defer cancel()
	stored, err := w.h.Revisions.Stored(ctx, w.r.old.Kind, w.r.Namespace, w.r.review.Name)
	if err != nil {
		w.r.log(ctx).Info("The stored workload could not be read; nothing is written for it", "reason", err.Error())
		return nil
	}
	if stored == nil || stored.UID == "" || stored.UID != w.r.old.UID {
		return nil
	}
	return stored
}
