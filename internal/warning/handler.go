package warning

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/panics"
)

// Path is where the handler is called.
const Path = "/impact"

// Foreseer foresees what an edit does; false: it does not know enough yet.
type Foreseer interface {
	Foresee(edit impact.Edit) (impact.Answer, bool)
}

// Scope is what is answered of: nothing else is read, since whoever reaches the port may ask
// of anything.
type Scope struct {
	// Resources are configmaps, secrets or both.
	Resources []string
	// Serves reports whether anything in a namespace can be opted in.
	Serves func(namespace string) bool
}

func (s Scope) has(request *admissionv1.AdmissionRequest) bool {
	return slices.Contains(s.Resources, request.Resource.Resource) && s.Serves(request.Namespace)
}

// Handler answers reviews of edits. Make it with New.
type Handler struct {
	foresees Foreseer
	scope    Scope
	metrics  *Metrics
	bodies   admission.Bodies
}

// New makes a handler.
func New(foresees Foreseer, metrics *Metrics, scope Scope) *Handler {
	return &Handler{foresees: foresees, metrics: metrics, scope: scope}
}

// answer is what a review comes to; whatever that is, it is allowed.
type answer struct {
	result   result
	warnings []string
}

// ServeHTTP implements the admission protocol (admission.k8s.io/v1): a review with a uid
// always gets a review that allows, before the API server gives up. What is no review gets an
// HTTP error, which the API server ignores (failurePolicy). It is to be served by an
// admission.Server, which bounds what is read.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), admission.Within(r))
	defer cancel()

	body := h.bodies.Get()
	defer h.bodies.Put(body)
	body.Grow(int(min(max(r.ContentLength, 0), admission.MaxBytes)) + bytes.MinRead) // once: what is left behind would not be wiped
	request, status, err := admission.Read(w, r, body)
	if err != nil {
		h.Refused(status)
		http.Error(w, "configstamp: "+err.Error(), status)
		return
	}
	said, judged := answer{result: late}, make(chan answer, 1)
	go func() { judged <- h.judge(ctx, request) }()
	select {
	case said = <-judged:
		judged <- said
	case <-ctx.Done():
	}
	h.metrics.reviewed(said.result, time.Since(start)) // before anybody has the answer
	admission.Write(w, klog.FromContext(ctx), &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true, Warnings: said.warnings})
	<-judged // what is still read has its room
}

// Refused counts a request that the server refuses, by its HTTP status.
func (h *Handler) Refused(status int) {
	said := unreadable
	if status == http.StatusServiceUnavailable {
		said = busy
	}
	h.metrics.reviewed(said, 0)
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
	if !h.scope.has(request) {
		return answer{result: quiet}
	}
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
