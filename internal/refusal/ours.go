package refusal

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The words of our ValidatingAdmissionPolicy (deploy/chart/templates/admissionpolicy.yaml),
// which holds our service account to our own annotations, where it says what stands
// around the fields, and to what is opted in.
const (
	BeforeForbidden = "configstamp may change its own annotations alone, and this request would change "
	AfterForbidden  = ": another mutating webhook"
	NotServed       = "configstamp may change workloads that are opted in, and no others"
)

// OptedOut reports whether our own policy refused a patch because the workload is not
// opted in. The API server knows of it and our watches are about to tell; or it knows
// later than they do of a Namespace that was opted in a moment ago.
func OptedOut(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(StatusOf(err).Message, NotServed)
}

// Forbidden are the fields that our own policy refused to have changed by an empty patch,
// nil for other errors. It was another webhook that would have changed them.
func Forbidden(err error) []string {
	_, rest, _ := strings.Cut(StatusOf(err).Message, BeforeForbidden)
	fields, _, found := strings.Cut(rest, AfterForbidden)
	if !found || !apierrors.IsForbidden(err) {
		return nil
	}
	return slices.DeleteFunc(strings.Split(fields, ", "), func(text string) bool { return !IsField(text) })
}
