package webhook

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/admission"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// request is a parsed admission request. Nothing changes it afterwards.
type request struct {
	checksum.Request
	review *admissionv1.AdmissionRequest
	// object is the requested workload, and old the stored one. For a creation or an empty patch they are the same.
	object, old *workload.Object
	candidate   checksum.Candidate // by the object alone
	manager     string             // the field manager, "" if the request names none
	dryRun      bool
	warnings    []string // about annotations that cannot be read
}

// read parses a review of a workload. It returns nil if the review concerns no workload.
func (h *Handler) read(review *admissionv1.AdmissionRequest) (*request, error) {
	kind, ok := h.Kinds.Find(review.Resource.Group, review.Resource.Resource)
	create := review.Operation == admissionv1.Create
	switch {
	case !ok, review.SubResource != "", !create && review.Operation != admissionv1.Update, !create && kind.CreateOnly && !kind.Immutable:
		return nil, nil
	}
	object, err := kind.Decode(review.Object.Raw)
	if err != nil {
		return nil, err
	}
	if object.Name == "" && object.GenerateName == "" {
		// The API server refuses it anyway, and a patch must never fail: that would deny.
		return nil, errors.New("the object has no name")
	}
	object.Namespace = review.Namespace
	r := &request{review: review, object: object, old: object, manager: fieldManager(review), dryRun: isDryRun(review)}
	r.Namespace, r.Change = review.Namespace, checksum.Created
	r.candidate = checksum.Candidate{Inject: object.Labels[checksum.InjectLabel], Owned: object.RolledByOwner(h.Kinds)}
	if _, declines := r.candidate.Declines(); declines && (create || !kind.Immutable) {
		return r, nil // the rest is not needed
	}
	if !create && !bytes.Equal(review.OldObject.Raw, review.Object.Raw) {
		if r.old, err = kind.Decode(review.OldObject.Raw); err != nil {
			return nil, err
		}
	}
	if !create {
		r.Change = changeOf(&r.old.Template, &object.Template)
		r.Asker = checksum.AskerOf(r.manager, checksum.IsOwn(review.UserInfo.Username, h.OwnNamespace))
	}
	if r.Sent, err = object.Records(); err != nil {
		r.warnings = append(r.warnings, reason.BaselineUnreadable.Warning(reason.Values{Text: err.Error()}))
	}
	r.TemplateBytes, r.WorkloadBytes = foreignBytes(object)
	return r, nil
}

// held returns the records of the stored object. An unreadable baseline counts as none.
func (r *request) held() (held checksum.Records) {
	if r.Change != checksum.Created {
		held, _ = r.old.Records()
	}
	return held
}

func changeOf(was, is *workload.Template) checksum.Change {
	switch {
	case is.Same(was):
		return checksum.NoChange
	case is.SameButAnnotations(was):
		return checksum.AnnotationsChanged
	}
	return checksum.TemplateChanged
}

// log returns a logger with the identity of the request. Call it only to log something.
func (r *request) log(ctx context.Context) klog.Logger { return admission.LogOf(ctx, r.review) }

func isDryRun(review *admissionv1.AdmissionRequest) bool {
	return review.DryRun != nil && *review.DryRun
}

// fieldManager reads options.fieldManager, which create, update, patch and
// apply share; rollout undo and scale send none.
func fieldManager(review *admissionv1.AdmissionRequest) string {
	var options struct {
		FieldManager string `json:"fieldManager"`
	}
	if err := json.Unmarshal(review.Options.Raw, &options, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
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
