package webhook

import (
	"context"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/reason"
)

// maxWarnings bounds an answer's warnings; the API server cuts them at
// 4 KiB in all.
const maxWarnings = 12

// bodies are buffers for the next reviews.
type bodies = admission.Bodies

// ServeHTTP implements the admission protocol (admission.k8s.io/v1): a review
// with a uid always gets a review that allows. What is no review at all gets an
// HTTP error, which the API server treats as its failurePolicy says. It is to be served by
// an admission.Server, which bounds what is read.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serve(w, r, &h.bodies, h.Metrics.Refused, func(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return h.Admit(ctx, request).response(request)
	})
}

func serve(w http.ResponseWriter, r *http.Request, bodies *bodies, refused func(status int), admit func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
	body := bodies.Get()
	defer bodies.Put(body)
	request, status, err := admission.Read(w, r, body)
	if err != nil {
		refused(status)
		http.Error(w, "configstamp: "+err.Error(), status)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), admission.Within(r))
	defer cancel()
	admission.Write(w, klog.FromContext(ctx), admit(ctx, request))
}

// response is the answer in the API's form.
func (a Answer) response(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return allow(request, a.Outcome.Label(), a.Patch, a.Warnings)
}

// allow allows a request; there is no patch when nothing changes.
func allow(request *admissionv1.AdmissionRequest, outcome string, operations []jsonpatch.Operation, warnings []string) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{
		UID:              request.UID,
		Allowed:          true,
		Warnings:         warnings,
		AuditAnnotations: map[string]string{"outcome": outcome},
	}
	if more := len(warnings) - maxWarnings; more > 0 {
		response.Warnings = append(warnings[:maxWarnings:maxWarnings], fmt.Sprintf("configstamp: and %d more", more))
	}
	if len(operations) == 0 {
		return response
	}
	patch, err := encode(operations)
	if err != nil {
		response.Warnings = append(response.Warnings, reason.Panicked.Warning(reason.Values{}))
		return response
	}
	patchType := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = patch, &patchType
	return response
}
