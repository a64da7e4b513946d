// Package refusal describes errors of the API server without their messages.
//
// A message may come from an admission webhook, a policy or a conversion, and may quote the object, such as the values
// of a template's plain env. So only these parts are passed on, in forms that the API server itself keeps: the reason,
// the status code, the fields, the name of the webhook or policy, and the missing right.
package refusal

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plain is an error of the API server without its message. It still has its type, for apierrors.IsForbidden and the like.
type plain struct {
	err    error
	status metav1.Status
	text   string
}

// Error implements error.
func (p *plain) Error() string { return p.text }

// Unwrap is for errors.Is and errors.As.
func (p *plain) Unwrap() error { return p.err }

// Status implements apierrors.APIStatus.
func (p *plain) Status() metav1.Status { return p.status }

// Plain returns err without the message of the API server; what was wrapped around that stays. Other errors are returned
// unchanged.
func Plain(err error) error {
	var known *plain
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &known) || !errors.As(err, &answer) {
		return err
	}
	status := answer.Status()
	text := Words(&status)
	if inner := innermost(err); inner != nil {
		if around, ends := strings.CutSuffix(err.Error(), inner.Error()); ends {
			text = around + text
		}
	}
	return &plain{err, status, text}
}

// innermost returns the answer that err wraps, nil if it wraps another error beside it.
func innermost(err error) error {
	for ; err != nil; err = errors.Unwrap(err) {
		if _, ok := err.(apierrors.APIStatus); ok {
			return err
		}
	}
	return nil
}

// The API server's own forms, of which only these parts are read. The message of a webhook stands after them. Lengths are
// checked separately: an expression that counts hundreds of characters takes a megabyte.
var (
	deniedByWebhook = regexp.MustCompile(`^admission webhook "([a-z0-9.-]+)" (?:denied the request|attempted to)`)
	failedWebhook   = regexp.MustCompile(`^Internal error occurred: failed calling webhook "([a-z0-9.-]+)":`)
	deniedByPolicy  = regexp.MustCompile(`^[a-z0-9. "-]*(?:is forbidden: |is invalid: : Invalid value: "?)?ValidatingAdmissionPolicy '([a-z0-9.-]+)' with binding`)
	missingRight    = regexp.MustCompile(`^[a-z0-9.-]+ (?:"[^"]*" )?is forbidden: User "[^"]*" cannot ([a-z]{1,16}) resource "([a-z0-9./-]+)"`)
	fieldPath       = regexp.MustCompile(`^(metadata|spec|status)([.\[][A-Za-z0-9_./\[\]-]+)?$`)
)

// StatusOf returns the API server's answer in an error, zero if there is none.
func StatusOf(err error) (status metav1.Status) {
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		return answer.Status()
	}
	return status
}

// Words returns a description of a status: the webhook, policy or right, the reason, the code, and the fields.
func Words(status *metav1.Status) string {
	text := "the API server refused"
	switch {
	case named(deniedByWebhook, status) != "":
		text = fmt.Sprintf("admission webhook %q refused", named(deniedByWebhook, status))
	case named(failedWebhook, status) != "":
		text = fmt.Sprintf("admission webhook %q could not be called", named(failedWebhook, status))
	case named(deniedByPolicy, status) != "":
		text = fmt.Sprintf("ValidatingAdmissionPolicy %q refused", named(deniedByPolicy, status))
	case named(missingRight, status) != "":
		text = fmt.Sprintf("the right to %s is missing", named(missingRight, status))
	case status.Code >= http.StatusInternalServerError:
		text = "the API server failed"
	}
	text += ": " + Reason(status)
	if fields := fieldsOf(status); len(fields) > 0 {
		text += ", at " + strings.Join(fields, ", ")
	}
	return text
}

// longestName bounds the name of an object, and longestField the path of a field.
const longestName, longestField = 253, 400

// named returns what a form finds, "" if it does not match.
func named(form *regexp.Regexp, status *metav1.Status) string {
	found := form.FindStringSubmatch(status.Message)
	if found == nil || len(found[len(found)-1]) > longestName {
		return ""
	}
	return strings.Join(found[1:], " ")
}

// Reason returns the reason of a status with its code, if it is one of Kubernetes' own: a webhook may write anything
// there.
func Reason(status *metav1.Status) string {
	if !slices.Contains(reasons(), status.Reason) {
		return fmt.Sprintf("status code %d", status.Code)
	}
	return fmt.Sprintf("%s (%d)", status.Reason, status.Code)
}

func reasons() []metav1.StatusReason {
	return []metav1.StatusReason{
		metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists,
		metav1.StatusReasonConflict, metav1.StatusReasonGone, metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonStoreReadError, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest,
		metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonInternalError, metav1.StatusReasonExpired, metav1.StatusReasonServiceUnavailable,
	}
}

// IsField reports whether a text is the path of a field, and nothing else.
func IsField(text string) bool { return len(text) <= longestField && fieldPath.MatchString(text) }

// mostFields bounds the fields in a description.
const mostFields = 4

// fieldsOf returns the paths of the fields in a status.
func fieldsOf(status *metav1.Status) (fields []string) {
	if status.Details == nil {
		return nil
	}
	for _, cause := range status.Details.Causes {
		if len(fields) < mostFields && IsField(cause.Field) && !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}
