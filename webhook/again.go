package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/panics"
	"github.com/configstamp/configstamp/internal/pins"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// Revisions tells which revisions a workload has, and what is stored of itself.
type Revisions interface {
	pins.Stored
	pins.Revisions
	// HasPods reports whether there is a pod of a revision at this moment.
	HasPods(ctx context.Context, namespace, selector string, revision *workload.Revision) (bool, error)
}

// revisionsWithin bounds the question whether a creation brings a revision back. With the proof that memory
// is fresh, and two seconds for snapshots, it stays below the three that an admission has.
const revisionsWithin = 700 * time.Millisecond

// leftBehind is what is found of a workload that is made again while its pods run, as after
// kubectl delete --cascade=orphan, or when a backup brings back ReplicaSets first.
type leftBehind struct {
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
func (h *Handler) lookBehind(ctx context.Context, r *request) *leftBehind {
	left := &leftBehind{}
	if r.Change != checksum.Created || !pins.Keeps(r.object.Kind) {
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
		left.revision, left.err = h.left(ctx, r.object)
	}()
	return left
}

// left is the revision without an owner that has the template of an object: of several the newest
// that has pods, else the newest. Nil is none.
func (h *Handler) left(ctx context.Context, object *workload.Object) (*workload.Revision, error) {
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
		if has, err := h.Revisions.HasPods(ctx, object.Namespace, selector, revision); err == nil && has {
			return revision, nil
		}
	}
	return revisions[0], nil
}

// bringBack has a creation take what is on record in the revision that it brings back.
func (h *Handler) bringBack(ctx context.Context, r *request, left *leftBehind, f *facts) {
	switch left.wait(); {
	case left.err != nil:
		r.log(ctx).Info("It is not known whether pods of this template run already; it is stamped with present content", "reason", left.err.Error())
		f.Revision = checksum.LeftUnknown
		return
	case left.revision == nil:
		return
	}
	f.Revision, f.behind = checksum.LeftBehind, left.revision
	var own map[string]string
	if r.object.Kind.CopiesAnnotations() {
		own = left.revision.Annotations
	}
	// A baseline that cannot be read counts as none.
	f.Held, _ = checksum.RecordsIn(own, left.revision.Template.Metadata.Annotations)
	var err error
	if f.ring, err = h.lookUp(ctx, f); err != nil {
		r.log(ctx).Info("The key of a checksum could not be looked up; nothing is decided by it", "reason", err.Error())
		f.Fresh = false
	}
}

// mayBeStale tells of sources that were recorded as they are, and edited after the revision was made
// whose pods run.
func (h *Handler) mayBeStale(r *request, f *facts, recorded checksum.Records) (findings []checksum.Finding) {
	if f.behind == nil {
		return nil
	}
	for source, value := range recorded.Baseline {
		if value == f.Held.Baseline[source] {
			continue
		}
		if written, created := h.Sources.Written(r.Namespace, source); written.After(created) && written.After(f.behind.Created) {
			findings = append(findings, checksum.Finding{Reason: reason.ConfigMaybeStale, Source: source})
		}
	}
	slices.SortFunc(findings, func(a, b checksum.Finding) int { return a.Source.Compare(b.Source) })
	return findings
}
