package webhook

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/internal/reason"
)

// maxWarnings bounds an answer's warnings; the API server cuts them at
// 4 KiB in all.
const maxWarnings = 12

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
