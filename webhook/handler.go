package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/watchdog"
	"github.com/configstamp/configstamp/internal/workload"
)

// Sources tells what the ConfigMaps and Secrets of a namespace hold.
type Sources interface {
	// Names lists the sources of a kind, from memory.
	Names(namespace string, kind checksum.Kind) []string
	// Cached answers from memory, which may lag behind the API server. It
	// fails when memory cannot know, as before the caches are full.
	Cached(namespace string, sources []checksum.Source) (checksum.Contents, error)
	// Written is when a source's data was last written, and when the source was created;
	// zero when that is not known.
	Written(namespace string, source checksum.Source) (written, created time.Time)
}

// Checker proves what the sources of a namespace hold.
type Checker interface {
	// Fresh proves what the API server holds of must at this moment, or fails in a
	// bounded time. Of beside it tells what it could read meanwhile.
	Fresh(ctx context.Context, namespace string, must, beside []checksum.Source) (checksum.Contents, error)
}

// Namespaces tells what Namespaces say of the workloads in them.
type Namespaces interface {
	// Look is what is known of a Namespace; one that is not known is read live.
	Look(ctx context.Context, namespace string) (checksum.Namespace, error)
	// OptedIn asks the API server itself.
	OptedIn(ctx context.Context, namespace string) (bool, error)
}

// Keys gives the installation's keys.
type Keys interface {
	// Ring is nil while no key is stored.
	Ring() *checksum.Ring
	// Refresh looks live, in a bounded time, for a key that the ring lacks.
	// Found or not, Ring is up to date then; an error tells that the key may
	// well exist.
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
	// People checks for people's requests, Own for re-admissions of our own account, so
	// that these never take the room of those.
	People, Own Checker
	Keys        Keys
	Metrics     *Metrics
	// Patience bounds all that an admission asks of the API server for people; 0 is no
	// bound beyond that of People and Keys. What our own account asks for is bounded by
	// Own, and by the time that the API server waits for us.
	Patience time.Duration
	// Revisions tell what a creation or an undo brings back, and what is stored of a workload
	// before anything is written for it.
	Revisions Revisions
	// Snapshots make and read those that pods are pinned to; nil: nothing is pinned.
	Snapshots Snapshots
	// Announce hears of clients that fight with us over a workload, of undos, and of what
	// could not be pinned; nil: nobody does.
	Announce Announcer
	// Now is the clock by which such fights are counted; nil is the real one.
	Now func() time.Time

	underWay  watchdog.Work
	stripping stripping
	unpinned  telling
	bodies    bodies
}

// Admit answers one request. Whatever goes wrong, the answer allows it
// unchanged, with a warning, and the controller heals what was missed.
func (h *Handler) Admit(ctx context.Context, request *admissionv1.AdmissionRequest) (answer Answer) {
	start := time.Now()
	defer h.underWay.Begin(start)()
	defer func() {
		if value := recover(); value != nil {
			logOf(ctx, request).Error(nil, "Admission panicked; the object is admitted unchanged", "panic", panics.What(value), "stack", panics.Where())
			answer = Answer{Outcome: reason.AdmissionFailed, Reason: reason.Panicked, Warnings: []string{reason.Panicked.Warning(reason.Values{})}}
		}
		if asksWhatWouldRoll(request) {
			answer = answer.withOutcome()
		}
		h.Metrics.admitted(request.Operation, answer, time.Since(start))
	}()
	answer, err := h.admit(ctx, request)
	if err != nil {
		logOf(ctx, request).Error(err, "Admitted unchanged", "outcome", answer.Outcome.Label(), "reason", answer.Reason)
		answer.Patch = nil
		answer.Warnings = append(answer.Warnings, reason.AdmissionFailed.Warning(reason.Values{Text: err.Error()}))
		return answer
	}
	if klog.FromContext(ctx).V(2).Enabled() {
		logOf(ctx, request).V(2).Info("Admitted", "outcome", answer.Outcome.Label(), "reason", answer.Reason, "operations", len(answer.Patch), "dryRun", isDryRun(request))
	}
	return answer
}

// stuckAfter is many times what an admission may take, whatever the API server does.
const stuckAfter = 5 * time.Minute

// Healthy says why the process should be started anew, nil when that would not help:
// an admission hangs, which no request to the API server can cause.
func (h *Handler) Healthy(now time.Time) error { return hanging(&h.underWay, now) }

func hanging(underWay *watchdog.Work, now time.Time) error {
	if oldest := underWay.Oldest(); !oldest.IsZero() && now.Sub(oldest) > stuckAfter {
		return fmt.Errorf("an admission has been under way for %s", now.Sub(oldest).Round(time.Second))
	}
	return nil
}

// logOf is the log in which a request can be told from others. It is made when
// there is something to log.
func logOf(ctx context.Context, request *admissionv1.AdmissionRequest) klog.Logger {
	return klog.FromContext(ctx).WithValues("kind", request.Kind.Kind, "namespace", request.Namespace, "name", request.Name, "operation", request.Operation)
}

func (h *Handler) admit(ctx context.Context, request *admissionv1.AdmissionRequest) (Answer, error) {
	if h.Serves != nil && !h.Serves(request.Namespace) {
		return Answer{Outcome: reason.NotServed}, nil
	}
	kind, ok := h.Kinds.Find(request.Resource.Group, request.Resource.Resource)
	create := request.Operation == admissionv1.Create
	if !ok || request.SubResource != "" || (!create && (request.Operation != admissionv1.Update || kind.CreateOnly && !kind.Immutable)) {
		return Answer{Outcome: reason.NotServed}, nil
	}
	object, err := kind.Decode(request.Object.Raw)
	if err != nil {
		return Answer{Outcome: reason.TemplateUnreadable}, err
	}
	if object.Name == "" && object.GenerateName == "" {
		// The API server refuses it anyway, and a patch must never fail: that would deny.
		return Answer{Outcome: reason.TemplateUnreadable}, errors.New("the object has no name")
	}
	object.Namespace = request.Namespace
	if kind.Immutable && !create {
		return restore(request, object)
	}
	candidate := checksum.Candidate{Inject: object.Labels[checksum.InjectLabel], Owned: object.RolledByOwner(h.Kinds)}
	if why, declines := candidate.Declines(); declines {
		return Answer{Outcome: why}, nil
	}
	return h.decide(ctx, request, object, candidate)
}

// serves reports whether a workload that does not decline is served. A Namespace that does not
// opt it in is read again: it may have been labelled a moment ago.
func (h *Handler) serves(ctx context.Context, name string, candidate checksum.Candidate, namespace *checksum.Namespace) bool {
	if served, _ := checksum.Served(candidate, *namespace); served {
		return true
	}
	in, err := h.Namespaces.OptedIn(ctx, name)
	namespace.OptedIn = in && err == nil
	return in || err != nil
}

// decide answers for a workload that may be ours to stamp.
func (h *Handler) decide(ctx context.Context, request *admissionv1.AdmissionRequest, object *workload.Object, candidate checksum.Candidate) (Answer, error) {
	old, err := stored(request, object)
	if err != nil {
		return Answer{Outcome: reason.TemplateUnreadable}, err
	}
	admission, warnings := h.asked(request, object, old)
	candidate.Foreign = object.Foreign(h.Dialects)
	namespace, unknown := h.Namespaces.Look(ctx, request.Namespace)
	if !h.serves(ctx, request.Namespace, candidate, &namespace) {
		return Answer{Outcome: reason.OptedOut}, nil
	}
	admission.Policy = h.Policy.With(
		checksum.Level{Origin: checksum.OfWorkload, Annotations: object.Annotations},
		checksum.Level{Origin: checksum.OfNamespace, Annotations: namespace.Settings},
	).Translated(candidate.Foreign, func(kind checksum.Kind) []string { return h.Sources.Names(request.Namespace, kind) })
	left := h.lookBehind(ctx, request, object)
	defer left.end()
	unreferenced := object.OnlyUnreferenced(candidate.Foreign)
	warnings = append(warnings, said(unreferenced)...)
	known := &witness{h: h, request: request, old: old, namespace: namespace}
	h.undo(ctx, request, object, known, &admission)

	var ring *checksum.Ring
	if admission.NeedsContent() {
		references, err := object.References()
		if err != nil {
			return Answer{Outcome: reason.TemplateUnreadable, Warnings: warnings}, err
		}
		warnings = append(warnings, unnameable(references, &admission.Policy)...)
		admission.Selections = checksum.Selections(references, admission.Policy)
		admission.References = references
		if ring, err = h.look(ctx, request, &admission); err != nil {
			why := reason.SourcesUnknown
			if errors.Is(err, errNoKey) {
				why = reason.NoDigestKey
			}
			return Answer{Outcome: reason.AdmissionFailed, Reason: why, Warnings: warnings}, err
		}
		if unknown != nil {
			logOf(ctx, request).Info("The policy of the Namespace could not be read; this admission rolls nothing", "reason", unknown.Error())
			admission.Fresh = false
		}
	}
	ring = h.bringBack(ctx, request, left, &admission, ring)
	decision := checksum.Decide(ring, admission)
	decision.Findings = append(decision.Findings, h.mayBeStale(request.Namespace, left.revision, admission.Held, decision.Records)...)
	h.makeSnapshots(ctx, request, known, &decision)
	h.announcePins(ctx, request, known, decision.Findings)
	if decision.Outcome == reason.Restored {
		h.watchStripping(ctx, request, known, admission.Sent, admission.Held)
	}
	answer := Answer{
		Outcome: decision.Outcome, Reason: cmp.Or(reasonOf(decision.Findings), reasonOf(unreferenced)), Patch: patchFor(object, admission.Sent, decision.Records),
		Warnings: append(warnings, said(decision.Findings)...), rollsAnyway: admission.TemplateChanged,
	}
	for _, finding := range decision.Findings {
		answer.found = append(answer.found, finding.Reason)
	}
	return answer, nil
}

// said is findings as warnings, reasonOf the reason of the first.
func said(findings []checksum.Finding) (warnings []string) {
	for _, finding := range findings {
		warnings = append(warnings, finding.Warning())
	}
	return warnings
}

func reasonOf(findings []checksum.Finding) reason.Reason {
	if len(findings) == 0 {
		return reason.NoReason
	}
	return findings[0].Reason
}

// asked is what the request alone says of an admission.
func (h *Handler) asked(request *admissionv1.AdmissionRequest, object, old *workload.Object) (admission checksum.Admission, warnings []string) {
	admission = checksum.Admission{
		Namespace: request.Namespace, Create: request.Operation == admissionv1.Create,
		Own: checksum.IsOwn(request.UserInfo.Username, h.OwnNamespace),
	}
	var err error
	if admission.Sent, err = object.Records(); err != nil {
		warnings = append(warnings, reason.BaselineUnreadable.Warning(reason.Values{Text: err.Error()}))
	}
	if !admission.Create {
		// An unreadable baseline counts as none, and was warned of above.
		admission.Held, _ = old.Records()
		admission.Asker = checksum.AskerOf(fieldManager(request))
		admission.TemplateChanged = !object.Template.Same(&old.Template)
	}
	h.pins(request, object, old, &admission)
	admission.TemplateBytes, admission.WorkloadBytes = foreignBytes(object)
	return admission, warnings
}

// restore answers an update of a kind whose template is immutable. It puts our annotations back
// as they are stored, whoever is opted in: the API server refuses the update without them.
func restore(request *admissionv1.AdmissionRequest, object *workload.Object) (Answer, error) {
	old, err := stored(request, object)
	if err != nil {
		return Answer{Outcome: reason.TemplateUnreadable}, err
	}
	sent, _ := object.Records() // an unreadable baseline counts as none
	held, _ := old.Records()
	decision := checksum.Decide(nil, checksum.Admission{Sent: sent, Held: held})
	if decision.Outcome == reason.Kept {
		return Answer{Outcome: reason.NotServed}, nil
	}
	return Answer{Outcome: decision.Outcome, Reason: reasonOf(decision.Findings), Patch: patchFor(object, sent, held), Warnings: said(decision.Findings)}, nil
}

// stored is the object before the request; for a creation, or an empty patch, it is the
// same.
func stored(request *admissionv1.AdmissionRequest, object *workload.Object) (*workload.Object, error) {
	if request.Operation == admissionv1.Create || bytes.Equal(request.OldObject.Raw, request.Object.Raw) {
		return object, nil
	}
	return object.Kind.Decode(request.OldObject.Raw)
}

func (h *Handler) now() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}

// fieldManager reads options.fieldManager, which create, update, patch and
// apply share; rollout undo and scale send none.
func fieldManager(request *admissionv1.AdmissionRequest) string {
	var options struct {
		FieldManager string `json:"fieldManager"`
	}
	if err := json.Unmarshal(request.Options.Raw, &options, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return ""
	}
	return options.FieldManager
}

func foreignBytes(object *workload.Object) (template, own int) {
	for key, value := range object.Template.Metadata.Annotations {
		if !checksum.IsOursOnTemplate(key) {
			template += len(key) + len(value)
		}
	}
	for key, value := range object.Annotations {
		if !checksum.IsOursOnWorkload(key) {
			own += len(key) + len(value)
		}
	}
	return template, own
}

func unnameable(references []checksum.Reference, policy *checksum.Policy) []string {
	var warnings []string
	warned := map[checksum.Source]bool{}
	for i := range references {
		source := references[i].Source
		if policy.Serves(source.Kind) && !source.Nameable() && !warned[source] {
			warned[source] = true
			warnings = append(warnings, checksum.Finding{Reason: reason.InvalidName, Source: source}.Warning())
		}
	}
	return warnings
}
