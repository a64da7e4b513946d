package warning

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/panics"
)

// Path is where the handler is called.
const Path = "/impact"

const (
	// room is how many bytes of reviews are in memory at once, and leastRoom what one takes:
	// checksums and workloads take some too.
	room      = 16 << 20
	leastRoom = 512 << 10
)

// Foreseer foresees what an edit does; false: it does not know enough yet.
type Foreseer interface {
	Foresee(edit impact.Edit) (impact.Answer, bool)
}

// Handler answers reviews of edits. Make it with New.
type Handler struct {
	foresees Foreseer
	metrics  *Metrics
	room     *semaphore.Weighted
	bodies   admission.Bodies
}

// New makes a handler.
func New(foresees Foreseer, metrics *Metrics) *Handler {
	return &Handler{foresees: foresees, metrics: metrics, room: semaphore.NewWeighted(room)}
}

// answer is what a review comes to; whatever that is, it is allowed.
type answer struct {
	result   result
	warnings []string
}

// ServeHTTP implements the admission protocol (admission.k8s.io/v1): a review with a uid
// always gets a review that allows, before the API server gives up. What is no review, or
// one too many, gets an HTTP error, which the API server ignores (failurePolicy).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start, within := time.Now(), admission.Within(r)
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	said := answer{result: late}
	defer func() { h.metrics.reviewed(said.result, time.Since(start)) }()

	if r.ContentLength < 0 || r.ContentLength > admission.MaxBytes { // room is made for what is announced
		said.result = unreadable
		http.Error(w, fmt.Sprintf("configstamp: an admission review needs a Content-Length of at most %d bytes", admission.MaxBytes), http.StatusLengthRequired)
		return
	}
	takes := max(r.ContentLength, leastRoom)
	if h.room.Acquire(ctx, takes) != nil {
		said.result = busy
		http.Error(w, "configstamp: too many reviews at once", http.StatusServiceUnavailable)
		return
	}
	body := h.bodies.Get()
	forget := func() {
		h.bodies.Put(body)
		h.room.Release(takes)
	}
	body.Grow(int(r.ContentLength) + bytes.MinRead) // once: what is left behind would not be wiped
	reading := http.NewResponseController(w)
	_ = reading.SetReadDeadline(start.Add(within)) // a recorder in a test has none
	request, status, err := admission.Read(w, r, body)
	_ = reading.SetReadDeadline(time.Time{})
	if err != nil {
		forget()
		said.result = unreadable
		klog.FromContext(ctx).Info("Not an admission review", "status", status, "reason", err.Error())
		http.Error(w, "configstamp: "+err.Error(), status)
		return
	}
	uid, judged := request.UID, make(chan answer, 1)
	go func() {
		defer forget()
		judged <- h.judge(ctx, request)
	}()
	select {
	case said = <-judged:
	case <-ctx.Done():
	}
	admission.Write(w, klog.FromContext(ctx), &admissionv1.AdmissionResponse{UID: uid, Allowed: true, Warnings: said.warnings})
}

// judge looks at what an edit does.
func (h *Handler) judge(ctx context.Context, request *admissionv1.AdmissionRequest) (said answer) {
	log := klog.FromContext(ctx).WithValues("kind", request.Kind.Kind, "namespace", request.Namespace, "name", request.Name, "operation", request.Operation)
	defer func() {
		if value := recover(); value != nil {
			log.Error(nil, "Looking at an edit panicked; it is allowed without a warning", "panic", panics.What(value), "stack", panics.Where())
			said = answer{result: panicked}
		}
	}()
	scratch := h.bodies.Get()
	defer h.bodies.Put(scratch)
	edit, err := editOf(request, scratch)
	switch {
	case err != nil:
		log.Info("An edit cannot be read; it is allowed without a warning", "reason", err.Error())
		return answer{result: unreadable}
	case edit == nil:
		return answer{result: quiet}
	}
	foreseen, ready := h.foresees.Foresee(*edit)
	if !ready {
		return answer{result: notReady}
	}
	if said = (answer{warned, sentences(edit, &foreseen)}); len(said.warnings) == 0 {
		said.result = quiet
	}
	log.V(2).Info("Looked at an edit", "result", said.result)
	return said
}
