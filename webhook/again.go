package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// leftBehind is what is found of a workload that is made again while its pods run, as after
// kubectl delete --cascade=orphan, or when a backup brings back ReplicaSets first.
type leftBehind struct {
	kind   *workload.Kind
	done   chan struct{} // closed once the rest is known; nil: nobody asked
	cancel context.CancelFunc

	revision *workload.Revision // nil: there is none
	err      error              // it is not known
}

// wait waits for what is found.
func (l *leftBehind) wait() {
	if l.done != nil {
		<-l.done
	}
}

// end ends the question, so that nobody reads the request after its answer.
func (l *leftBehind) end() {
	if l.done != nil {
		l.cancel()
		l.wait()
	}
}

// lookBehind asks, beside all else, for the revision that a creation brings back.
func (h *Handler) lookBehind(ctx context.Context, request *admissionv1.AdmissionRequest, object *workload.Object) *leftBehind {
	left := &leftBehind{kind: object.Kind}
	if request.Operation != admissionv1.Create || !keepsRevisions(object.Kind) {
		return left
	}
	left.done = make(chan struct{})
	ctx, left.cancel = context.WithTimeout(ctx, revisionsWithin)
	go func() {
		defer close(left.done)
		defer func() { // Admit's own does not reach other goroutines
			if value := recover(); value != nil {
				left.err = fmt.Errorf("reading revisions panicked: %s, %s", panics.What(value), panics.Where())
			}
		}()
		left.revision, left.err = h.left(ctx, request, object)
	}()
	return left
}

// left is the revision without an owner that has the template of an object: of several the newest
// that has pods, else the newest. Nil is none.
func (h *Handler) left(ctx context.Context, request *admissionv1.AdmissionRequest, object *workload.Object) (*workload.Revision, error) {
	// A revision has the labels of its template, and every selector matches those.
	selector := labels.SelectorFromSet(object.Template.Labels()).String()
	if selector == "" { // the API server refuses it
		return nil, nil
	}
	revisions, err := h.Revisions.Of(ctx, object.Kind, request.Namespace, selector, "")
	if err != nil {
		return nil, err
	}
	revisions = slices.DeleteFunc(revisions, func(one *workload.Revision) bool {
		// What is being deleted is adopted by nobody. With the stamps of an old one it would roll twice.
		return one.DeletionTimestamp != nil || one.Idle || !object.Template.IsOf(one)
	})
	if len(revisions) == 0 {
		return nil, nil
	}
	slices.SortFunc(revisions, func(a, b *workload.Revision) int { return cmp.Compare(b.Number, a.Number) })
	for _, revision := range revisions {
		if len(revisions) == 1 {
			break
		}
		if has, err := h.Revisions.HasPods(ctx, request.Namespace, selector, revision); err == nil && has {
			return revision, nil
		}
	}
	return revisions[0], nil
}

// bringBack has a creation take what is on record in the revision that it brings back, and gives
// the ring to judge it with.
func (h *Handler) bringBack(ctx context.Context, request *admissionv1.AdmissionRequest, left *leftBehind, admission *checksum.Admission, ring *checksum.Ring) *checksum.Ring {
	switch left.wait(); {
	case left.err != nil:
		logOf(ctx, request).Info("It is not known whether pods of this template run already; it is stamped with present content", "reason", left.err.Error())
		admission.AgainUnknown = true
		return ring
	case left.revision == nil:
		return ring
	}
	admission.Again = true
	var own map[string]string
	if left.kind.CopiesAnnotations() {
		own = left.revision.Annotations
	}
	// A baseline that cannot be read counts as none.
	admission.Held, _ = checksum.RecordsIn(own, left.revision.Template.Metadata.Annotations)
	ring, err := h.ring(ctx, admission)
	if err != nil {
		logOf(ctx, request).Info("The key of a checksum could not be looked up; nothing is decided by it", "reason", err.Error())
		admission.Fresh = false
	}
	return ring
}

// mayBeStale tells of sources that were recorded as they are, and edited after the revision was made
// whose pods run.
func (h *Handler) mayBeStale(namespace string, of *workload.Revision, held, recorded checksum.Records) (findings []checksum.Finding) {
	if of == nil {
		return nil
	}
	for source, value := range recorded.Baseline {
		if value == held.Baseline[source] {
			continue
		}
		if written, created := h.Sources.Written(namespace, source); written.After(created) && written.After(of.Created) {
			findings = append(findings, checksum.Finding{Reason: reason.ConfigMaybeStale, Source: source})
		}
	}
	slices.SortFunc(findings, func(a, b checksum.Finding) int { return a.Source.Compare(b.Source) })
	return findings
}
