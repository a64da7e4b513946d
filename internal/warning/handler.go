package warning

import (
	"context"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/impact"
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

// handler answers reviews of edits.
type handler struct {
	foresees Foreseer
	scope    Scope
	metrics  *Metrics
	bodies   admission.Bodies
}

// answer is what a review comes to; whatever that is, it is allowed.
type answer struct {
	result   result
	warnings []string
}

// Endpoint is an endpoint that answers reviews of edits.
type Endpoint = admission.Endpoint[answer]

// New makes an endpoint.
func New(foresees Foreseer, metrics *Metrics, scope Scope) *Endpoint {
	return (&handler{foresees: foresees, metrics: metrics, scope: scope}).endpoint()
}

func (h *handler) endpoint() *Endpoint {
	return &Endpoint{
		Decide: h.judge, Panicked: answer{result: panicked}, Late: &answer{result: late}, Wiped: true, Bodies: &h.bodies, Refused: h.refused,
		Respond: func(request *admissionv1.AdmissionRequest, said answer, took time.Duration) *admissionv1.AdmissionResponse {
			h.metrics.reviewed(said.result, took)
			return &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true, Warnings: said.warnings}
		},
	}
}

// refused counts a request that is no review, by its HTTP status.
func (h *handler) refused(status int) {
	said := unreadable
	if status == http.StatusServiceUnavailable {
		said = busy
	}
	h.metrics.reviewed(said, 0)
}

// judge looks at what an edit does.
func (h *handler) judge(ctx context.Context, request *admissionv1.AdmissionRequest) (said answer) {
	log := admission.LogOf(ctx, request)
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
	log.V(2).Info("Reviewed an edit", "result", said.result)
	return said
}
