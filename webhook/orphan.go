package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// Revisions reads workloads and their revisions.
type Revisions interface {
	pins.Stored
	pins.Revisions
	// HasPods reports whether there is a pod of a revision at this moment.
	HasPods(ctx context.Context, namespace, selector string, revision *workload.Revision) (bool, error)
}

// orphan is the search for an orphaned revision: one that a created workload will adopt, because its pods still
// run, such as after kubectl delete --cascade=orphan, or when a backup restores ReplicaSets first.
type orphan struct {
	done   chan struct{} // closed when the search ends; nil: there is none
	cancel context.CancelFunc

	revision *workload.Revision // nil: none was found
	err      error              // why the search failed
}

// wait waits for the end of the search.
func (l *orphan) wait() {
	if l.done != nil {
		<-l.done
	}
}

// end ends the search, so that the request is not read after its answer.
func (l *orphan) end() {
	if l.done != nil {
		l.cancel()
		l.wait()
	}
}

// findOrphan begins the search, which runs beside the gathering of the other facts.
func (h *Handler) findOrphan(ctx context.Context, r *request) *orphan {
	left := &orphan{}
	if r.Change != checksum.Created || !r.object.Kind.KeepsRevisions() {
		return left
	}
	left.done = make(chan struct{})
	ctx, left.cancel = context.WithTimeout(ctx, pins.RevisionsWithin)
	go func() {
		defer close(left.done)
		defer func() { // Admit's own does not reach other goroutines
			if value := recover(); value != nil {
				left.err = fmt.Errorf("reading revisions panicked: %s, %s", panics.What(value), panics.Where())
			}
		}()
		left.revision, left.err = h.orphanOf(ctx, r.object)
	}()
	return left
}

// orphanOf returns the revision without an owner that has the template of an object: of several the newest
// that has pods, otherwise the newest; nil if there is none. If pods cannot be listed, it is not known which of several
// it is: a wrong one would replace the pods of the other.
func (h *Handler) orphanOf(ctx context.Context, object *workload.Object) (*workload.Revision, error) {
	// A revision has the labels of its template, and every selector matches those.
	selector := labels.SelectorFromSet(object.Template.Labels()).String()
	if selector == "" { // the API server refuses it
		return nil, nil
	}
	revisions, err := h.Revisions.Of(ctx, object.Kind, object.Namespace, selector, "")
	if err != nil {
		return nil, err
	}
	revisions = slices.DeleteFunc(revisions, func(one *workload.Revision) bool {
		// A revision that is being deleted is not adopted. With the stamps of an old one the workload would roll twice.
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
		if has, err := h.Revisions.HasPods(ctx, object.Namespace, selector, revision); has || err != nil {
			return revision, err
		}
	}
	return revisions[0], nil
}

// adopt uses the records of the orphaned revision as those of the created workload.
func (h *Handler) adopt(ctx context.Context, r *request, left *orphan, f *facts) {
	switch left.wait(); {
	case left.err != nil:
		r.log(ctx).Info("Could not check whether pods of this template already run; it is stamped with the present content", "reason", left.err.Error())
		f.Revision = checksum.OrphanUnknown
		return
	case left.revision == nil:
		return
	}
	f.Revision, f.orphan = checksum.Orphaned, left.revision
	var own map[string]string
	if r.object.Kind.CopiesAnnotations() {
		own = left.revision.Annotations
	}
	// A baseline that cannot be read counts as none.
	f.Held, _ = checksum.RecordsIn(own, left.revision.Template.Metadata.Annotations)
	var err error
	if f.ring, err = h.ringFor(ctx, f); err != nil {
		r.log(ctx).Info("The key of a checksum could not be looked up; the checksum is not used", "reason", err.Error())
		f.Fresh = false
	}
}

// mayBeStale returns findings for sources whose present content was recorded, and that were edited after the
// orphaned revision was created.
func (h *Handler) mayBeStale(r *request, f *facts, recorded checksum.Records) (findings []checksum.Finding) {
	if f.orphan == nil {
		return nil
	}
	for source, value := range recorded.Baseline {
		if value == f.Held.Baseline[source] {
			continue
		}
		if written, created := h.Sources.Written(r.Namespace, source); written.After(created) && written.After(f.orphan.Created) {
			findings = append(findings, checksum.Finding{Reason: reason.ConfigMaybeStale, Source: source})
		}
	}
	slices.SortFunc(findings, func(a, b checksum.Finding) int { return a.Source.Compare(b.Source) })
	return findings
}
