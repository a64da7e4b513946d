package webhook

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// asksWhatWouldRoll reports whether a request is the dry run of a rolling re-admission.
// One of which another webhook has changed the template is, too.
func asksWhatWouldRoll(request *admissionv1.AdmissionRequest) bool {
	return isDryRun(request) && request.Operation == admissionv1.Update && checksum.AskerOf(fieldManager(request), false).Rolls()
}

// withOutcome returns the answer with its outcome as the first warning: the last of many are cut off. No warning would
// mean that no webhook was called.
func (a Answer) withOutcome() Answer {
	outcome := reason.OutcomeOf(append(a.found, a.Outcome, a.Reason)...)
	if a.rollsAnyway {
		outcome = reason.OutcomeWouldRoll
	}
	a.Warnings = slices.Insert(a.Warnings, 0, outcome.Warning())
	return a
}
