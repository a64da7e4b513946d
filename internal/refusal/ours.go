package refusal

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configstamp/configstamp/internal/reason"
)

// OptedOut reports whether our own policy refused a patch because the workload is not opted in: the
// watches of the API server's policy and ours are not equally fresh.
func OptedOut(err error) bool { return ofOurPolicy(err).Code == reason.OptedOut.String() }

// Blocked returns the fields that another webhook would have changed along with an empty patch, which
// our own policy refused. It returns nil for other errors.
func Blocked(err error) []string {
	if message := ofOurPolicy(err); message.Code == reason.Blocked.String() {
		return slices.DeleteFunc(message.Fields, func(text string) bool { return !IsField(text) })
	}
	return nil
}

// ofOurPolicy returns the message of our own ValidatingAdmissionPolicy, which holds our service account to
// our own annotations (deploy/chart/templates/admissionpolicy.yaml); the zero value for other errors.
func ofOurPolicy(err error) (message reason.Message) {
	status := StatusOf(err)
	if !apierrors.IsForbidden(err) || named(deniedByPolicy, &status) == "" {
		return message
	}
	_, text, _ := strings.Cut(status.Message, "' denied request: ")
	message, _ = reason.Parse(text)
	return message
}
