package webhook

import (
	"context"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// storedWithin bounds one such question.
const storedWithin = 500 * time.Millisecond

// witness knows of a request's workload what the request alone cannot say: a review may be
// invented, by whoever reaches our port. It is asked before anything is written, and by a
// request that writes nothing not at all.
type witness struct {
	h         *Handler
	r         *request
	namespace checksum.Namespace // as we know it

	asked  bool
	stored *workload.Object
}

// pins reports whether the workload is served and pins: its Namespace says so, or what is
// stored of it. Of a creation the Namespace alone can tell.
func (w *witness) pins(ctx context.Context) bool {
	says := checksum.Level{Origin: checksum.OfNamespace, Annotations: w.namespace.Settings}
	if served, _ := checksum.Served(checksum.Candidate{}, w.namespace); served && w.h.Policy.With(says).Pin {
		return true
	}
	return w.serves(ctx) && w.h.Policy.With(checksum.Level{Origin: checksum.OfWorkload, Annotations: w.stored.Annotations}, says).Pin
}

// serves reports whether there is such a workload, of the request's uid, and is served.
func (w *witness) serves(ctx context.Context) bool {
	if !w.asked {
		w.asked, w.stored = true, w.look(ctx)
	}
	if w.stored == nil {
		return false
	}
	served, _ := checksum.Served(checksum.Candidate{
		Inject: w.stored.Labels[checksum.InjectLabel], Foreign: w.stored.Foreign(w.h.Dialects), Owned: w.stored.RolledByOwner(w.h.Kinds),
	}, w.namespace)
	return served
}

// look is the workload as it is stored, nil when there is none of the request's uid, or when
// that is not known in time.
func (w *witness) look(ctx context.Context) *workload.Object {
	if w.r.Change == checksum.Created {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storedWithin)
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
