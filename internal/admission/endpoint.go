package admission

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/watchdog"
)

// Endpoint serves the reviews of one webhook (admission.k8s.io/v1). A review with a UID always gets an answer that
// allows, whatever goes wrong. A body that is no review gets an HTTP error, which the API server treats by the
// webhook's failurePolicy. Serve it by a Server, which bounds what is read. A is the type of an answer. The fields
// do not change while it serves.
type Endpoint[A any] struct {
	// Decide answers a request. Its context ends before the API server gives up.
	Decide func(ctx context.Context, request *admissionv1.AdmissionRequest) A
	// Panicked is the answer if Decide panics.
	Panicked A
	// Late is the answer if Decide has not returned when its context ends; nil: ServeHTTP waits for it.
	Late *A
	// Respond counts an answer, and converts it to the form of the API.
	Respond func(request *admissionv1.AdmissionRequest, answer A, took time.Duration) *admissionv1.AdmissionResponse
	// Refused counts bodies that are no review, by their HTTP status.
	Refused func(status int)
	// Wiped reports that a review may contain data that must not stay in memory.
	Wiped bool
	// Bodies are buffers for reviews; nil: its own.
	Bodies *Bodies

	underWay watchdog.Work
	own      Bodies
}

// ServeHTTP implements http.Handler.
func (e *Endpoint[A]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bodies := cmp.Or(e.Bodies, &e.own)
	body := bodies.Get()
	defer bodies.Put(body)
	if e.Wiped { // room is made once: what is left behind would not be wiped
		body.Grow(int(min(max(r.ContentLength, 0), MaxBytes)) + bytes.MinRead)
	}
	request, status, err := Read(w, r, body)
	if err != nil {
		e.Refused(status)
		http.Error(w, "configstamp: "+err.Error(), status)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), Within(r))
	defer cancel()
	start := time.Now()
	decided := make(chan A, 1)
	decide := func() { decided <- e.decide(ctx, request) }
	var answer A
	if e.Late == nil {
		decide()
		answer = <-decided
	} else {
		go decide()
		select {
		case answer = <-decided:
			decided <- answer
		case <-ctx.Done():
			answer = *e.Late
		}
		defer func() { <-decided }() // what is still read has its room
	}
	Write(w, klog.FromContext(ctx), e.respond(ctx, request, answer, time.Since(start)))
}

// respond calls Respond, and allows the request if that panics.
func (e *Endpoint[A]) respond(ctx context.Context, request *admissionv1.AdmissionRequest, answer A, took time.Duration) (response *admissionv1.AdmissionResponse) {
	defer func() {
		if value := recover(); value != nil {
			LogOf(ctx, request).Error(nil, "An answer panicked; the request is allowed unchanged", "panic", panics.What(value), "stack", panics.Where())
			response = &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
		}
	}()
	return e.Respond(request, answer, took)
}

// decide calls Decide, and recovers from a panic.
func (e *Endpoint[A]) decide(ctx context.Context, request *admissionv1.AdmissionRequest) (answer A) {
	defer e.underWay.Begin(time.Now())()
	defer func() {
		if value := recover(); value != nil {
			LogOf(ctx, request).Error(nil, "An admission panicked; it is allowed unchanged", "panic", panics.What(value), "stack", panics.Where())
			answer = e.Panicked
		}
	}()
	return e.Decide(ctx, request)
}

// stuckAfter is many times the longest duration of an admission, whatever the API server does.
const stuckAfter = 5 * time.Minute

// Healthy returns an error if an admission hangs, so that a restart of the process helps. A slow API server is no
// reason: every request to it is bounded.
func (e *Endpoint[A]) Healthy(now time.Time) error {
	if oldest := e.underWay.Oldest(); !oldest.IsZero() && now.Sub(oldest) > stuckAfter {
		return fmt.Errorf("an admission has been under way for %s", now.Sub(oldest).Round(time.Second))
	}
	return nil
}

// LogOf returns a logger with the identity of a request. Call it only to log something.
func LogOf(ctx context.Context, request *admissionv1.AdmissionRequest) klog.Logger {
	return klog.FromContext(ctx).WithValues("kind", request.Kind.Kind, "namespace", request.Namespace, "name", request.Name, "operation", request.Operation)
}
