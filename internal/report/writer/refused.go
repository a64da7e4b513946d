package writer

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/refusal"
)

// warnEvery is the least time between two Warnings that reports are not written.
const warnEvery = time.Hour

// refused holds where writing was refused for good: by a missing right, a quota or a policy.
type refused struct {
	mu     sync.Mutex
	rests  map[string]time.Time // until when a namespace rests
	warned time.Time
}

// until returns until when a namespace rests.
func (r *refused) until(namespace string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rests[namespace]
}

// rest starts the rest of a namespace, and reports whether a Warning is due.
func (r *refused) rest(namespace string, now time.Time) (warn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, until := range r.rests {
		if until.Before(now) {
			delete(r.rests, other)
		}
	}
	r.rests[namespace] = now.Add(compareEvery)
	if warn = now.Sub(r.warned) >= warnEvery; warn {
		r.warned = now
	}
	return warn
}

// refuse starts the rest of a namespace in which a request was refused for good, and emits a Warning once an
// hour.
func (w *Writer) refuse(ctx context.Context, namespace string, err error) {
	w.writes.WithLabelValues(refusedForGood).Inc()
	klog.FromContext(ctx).Info("Reports are not written for ten minutes", "namespace", namespace, "reason", err.Error())
	if w.refused.rest(namespace, w.Clock.Now()) {
		status := refusal.StatusOf(err)
		w.Warn("ConfigRollouts are not written, so kubectl get configrollouts may be out of date; nothing else depends on them: " + refusal.Words(&status))
	}
}

// forGood reports whether an error is a refusal that a retry in seconds will not change.
func forGood(err error) bool {
	soon := []int32{http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests}
	code := refusal.StatusOf(err).Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && !slices.Contains(soon, code)
}
