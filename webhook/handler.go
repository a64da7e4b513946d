package webhook

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/rarely"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// Sources reads ConfigMaps and Secrets from memory.
type Sources interface {
	// Names lists the sources of a kind.
	Names(namespace string, kind checksum.Kind) []string
	// Cached returns content from memory, which may lag behind the API server. It fails before the caches are full.
	Cached(namespace string, sources []checksum.Source) (checksum.Contents, error)
	// Written returns when a source's data was last written, and when the source was created; zero if that is not
	// known.
	Written(namespace string, source checksum.Source) (written, created time.Time)
}

// Checker proves the content of sources.
type Checker interface {
	// Fresh returns the content of must that the API server has at this moment, or fails in a bounded time. It also
	// returns what it could read of beside meanwhile.
	Fresh(ctx context.Context, namespace string, must, beside []checksum.Source) (checksum.Contents, error)
}

// Namespaces reads the settings of Namespaces.
type Namespaces interface {
	// Look returns a Namespace from memory. One that memory does not hold is read from the API server.
	Look(ctx context.Context, namespace string) (checksum.Namespace, error)
	// Read reads a Namespace from the API server.
	Read(ctx context.Context, namespace string) (checksum.Namespace, error)
}

// Keys holds the installation's keys.
type Keys interface {
	// Ring is nil while no key is stored.
	Ring() *checksum.Ring
	// Refresh reads the keys live, in a bounded time, to find one that is missing in the ring. Then Ring is up to date,
	// found or not; on an error the key may exist.
	Refresh(ctx context.Context, keyID string) (found bool, err error)
}

var errNoKey = errors.New("there is no digest key yet")

// Answer is what an admission comes to. It never denies.
type Answer struct {
	// Outcome is what it comes to, one of reason.AdmissionOutcomes.
	Outcome reason.Reason
	// Reason is why it came to that, or the first thing that is amiss.
	Reason   reason.Reason
	Patch    []jsonpatch.Operation
	Warnings []string

	// found is all that is amiss.
	found []reason.Reason
	// rollsAnyway: the request changes the pod template.
	rollsAnyway bool
}

// Handler decides on admission requests. Its fields do not change while it serves.
type Handler struct {
	Kinds workload.Table
	// Policy is the cluster's, beneath those of Namespaces and workloads.
	Policy checksum.Policy
	// OwnNamespace is configstamp's own namespace: a re-admission by one of its service accounts
	// is our controller's. "": none is.
	OwnNamespace string
	// Serves reports whether anything in a namespace can be opted in; nil: in each. Of others
	// nothing is read: an invented review may be of one.
	Serves func(namespace string) bool
	// Dialects are those of other products whose annotations count, and opt in.
	Dialects   []checksum.Dialect
	Namespaces Namespaces
	Sources    Sources
	// People checks for requests of users, Own for re-admissions of our own account, so that these never take the slots
	// of those.
	People, Own Checker
	Keys        Keys
	Metrics     *Metrics
	// Patience bounds the proof of content for requests of other clients; 0: the bounds of People and Keys alone.
	// Requests of our own account are bounded by Own, and by the timeout of the API server.
	Patience time.Duration
	// Revisions reads what a creation or an undo brings back, and the stored workload before anything is written for
	// it.
	Revisions Revisions
	// Pins keeps pods at the content of their template; nil: nothing is pinned.
	Pins *pins.Pins
	// Report receives clients that remove our annotations again and again, undos, and references that could not
	// be pinned; nil: they are not reported.
	Report pins.Reporter
	// Now is the clock by which such fights are counted; nil is the real one.
	Now func() time.Time

	stripping rarely.Limit
	unpinned  rarely.Limit
}

// Endpoint serves the handler.
func (h *Handler) Endpoint() *admission.Endpoint[Answer] {
	return &admission.Endpoint[Answer]{
		Decide:   h.Admit,
		Panicked: Answer{Outcome: reason.AdmissionFailed, Reason: reason.Panicked, Warnings: []string{reason.Panicked.Warning(reason.Values{})}},
		Respond: func(review *admissionv1.AdmissionRequest, answer Answer, took time.Duration) *admissionv1.AdmissionResponse {
			if asksWhatWouldRoll(review) {
				answer = answer.withOutcome()
			}
			h.Metrics.admitted(review.Operation, answer, took)
			return admission.Allow(review, answer.Outcome.Label(), answer.Patch, answer.Warnings)
		},
		Refused: h.Metrics.Refused,
	}
}

// Admit decides on one request. Whatever goes wrong, the answer allows it
// unchanged, with a warning, and the controller heals what was missed.
func (h *Handler) Admit(ctx context.Context, review *admissionv1.AdmissionRequest) Answer {
	answer, err := h.admit(ctx, review)
	if err != nil {
		admission.LogOf(ctx, review).Error(err, "Admitted unchanged", "outcome", answer.Outcome.Label(), "reason", answer.Reason.String())
		answer.Warnings = append(answer.Warnings, reason.AdmissionFailed.Warning(reason.Values{Text: err.Error()}))
		return answer
	}
	if klog.FromContext(ctx).V(2).Enabled() {
		admission.LogOf(ctx, review).V(2).Info("Admitted", "outcome", answer.Outcome.Label(), "reason", answer.Reason.String(), "operations", len(answer.Patch), "dryRun", isDryRun(review))
	}
	return answer
}

// admit runs the pipe: read the request, gather the facts, decide, cause the effects, write the patch.
func (h *Handler) admit(ctx context.Context, review *admissionv1.AdmissionRequest) (Answer, error) {
	if h.Serves != nil && !h.Serves(review.Namespace) {
		return Answer{Outcome: reason.NotServed}, nil
	}
	r, err := h.read(review)
	switch {
	case err != nil:
		return Answer{Outcome: reason.TemplateUnreadable}, err
	case r == nil:
		return Answer{Outcome: reason.NotServed}, nil
	case r.object.Kind.Immutable && r.Change != checksum.Created:
		return restore(r), nil
	}
	by, outcome := h.serves(ctx, r)
	if outcome != reason.NoReason {
		return Answer{Outcome: outcome}, nil
	}
	f, why, err := h.gather(ctx, r, by)
	if err != nil {
		outcome = reason.TemplateUnreadable
		if why != reason.NoReason {
			outcome = reason.AdmissionFailed
		}
		return Answer{Outcome: outcome, Reason: why, Warnings: f.warnings}, err
	}
	decision := checksum.Decide(f.ring, &r.Request, &f.Facts)
	for h.unmade(ctx, r, f, &decision) {
		decision = checksum.Decide(f.ring, &r.Request, &f.Facts)
	}
	h.effects(ctx, r, f, &decision)
	return r.answer(f, &decision, append(decision.Findings, h.mayBeStale(r, f, decision.Records)...)), nil
}

// unmade makes the snapshots that a decision needs. It returns whether some do not exist afterwards, which is a new
// fact: then fewer pins are decided, or no undo. Nothing is made for a dry run, nor on the word of a review alone.
func (h *Handler) unmade(ctx context.Context, r *request, f *facts, decision *checksum.Decision) bool {
	var unmade map[checksum.Source]reason.Reason
	of := decision.NewPins
	if decision.Outcome == reason.UndoTaken {
		of = f.gone
	}
	switch {
	case len(of) == 0:
		return false
	case !f.stored.pins(ctx):
		unmade = pins.Unproven(of)
	case !r.dryRun:
		unmade = h.Pins.Make(ctx, r.log, r.Namespace, of)
	}
	switch {
	case len(unmade) == 0:
		return false
	case f.Revision == checksum.Undo:
		f.Revision = pins.NoUndo(unmade)
	case f.Unmade == nil:
		f.Unmade = unmade
	default:
		maps.Copy(f.Unmade, unmade)
	}
	return true
}

// answer turns a decision into an answer, with all findings.
func (r *request) answer(f *facts, decision *checksum.Decision, findings []checksum.Finding) Answer {
	answer := Answer{
		Outcome: decision.Outcome, Reason: cmp.Or(reasonOf(findings), reasonOf(f.unreferenced)), Patch: patchFor(r.object, r.Sent, decision.Records),
		Warnings: append(f.warnings, checksum.Warnings(findings)...), rollsAnyway: r.Change == checksum.AnnotationsChanged || r.Change == checksum.TemplateChanged,
	}
	for _, finding := range findings {
		answer.found = append(answer.found, finding.Reason)
	}
	return answer
}

// reasonOf returns the reason of the first of some findings.
func reasonOf(findings []checksum.Finding) reason.Reason {
	if len(findings) == 0 {
		return reason.NoReason
	}
	return findings[0].Reason
}

// restore answers an update of a kind whose template is immutable. It puts our annotations back
// as they are stored, whoever is opted in: the API server refuses the update without them.
func restore(r *request) Answer {
	f := &facts{Facts: checksum.Facts{Held: r.held()}, warnings: r.warnings}
	decision := checksum.Decide(nil, &checksum.Request{Sent: r.Sent}, &f.Facts)
	if decision.Outcome == reason.Kept {
		return Answer{Outcome: reason.NotServed}
	}
	decision.Records = f.Held // which fit, as they are stored
	answer := r.answer(f, &decision, decision.Findings)
	answer.rollsAnyway = false // its template is immutable
	return answer
}

func (h *Handler) now() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}
