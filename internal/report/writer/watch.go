package writer

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
)

// metadataWatch has the API server send no more than metadata in watches. A list, as servers without
// WatchList need one, brings whole objects, of which nameAndVersion keeps no more.
type metadataWatch struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (m metadataWatch) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		request = request.Clone(request.Context())
		request.Header.Set("Accept", metadataAlone)
	}
	return m.RoundTripper.RoundTrip(request)
}

// nameAndVersion returns the name and the version of an object.
func nameAndVersion(whole runtime.Object) (*metav1.PartialObjectMetadata, bool) {
	object, err := meta.Accessor(whole)
	if err != nil {
		return nil, false
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}}, true
}

type watch = follow.Store[*metav1.PartialObjectMetadata]

// resource watches ConfigRollouts while the API server serves them.
func (w *Writer) resource() discovery.Resource {
	return discovery.Resource{GroupVersionResource: report.GroupVersion().WithResource(report.Resource), Watch: func(ctx context.Context, _ string) error {
		namespaces := w.Namespaces
		if len(namespaces) == 0 {
			namespaces = []string{metav1.NamespaceAll}
		}
		watches := make([]*watch, len(namespaces))
		for i, namespace := range namespaces {
			watches[i] = w.watchIn(namespace)
			watches[i].First = func() { w.listed(ctx, watches) }
			watches[i].Forbidden = watches[i].First
		}
		var running sync.WaitGroup
		for _, one := range watches {
			running.Go(func() { one.Run(ctx, w.client.reports) })
		}
		running.Wait()
		w.empty()
		return nil
	}}
}

// watchIn watches the objects of one namespace, or of all ("").
func (w *Writer) watchIn(namespace string) *watch {
	return &watch{
		Resource: report.Resource, Namespace: namespace, Clock: w.Clock, Transform: nameAndVersion,
		Event: func(object *metav1.PartialObjectMetadata, deleted bool) {
			version := object.ResourceVersion
			if deleted {
				version = ""
			}
			if at, ok := w.sourceOf(object.Namespace, object.Name); ok {
				w.watched(at, version)
			}
		},
		All: func(objects []*metav1.PartialObjectMetadata, _ string) {
			gone := w.objectsIn(namespace)
			for _, object := range objects {
				if at, ok := w.sourceOf(object.Namespace, object.Name); ok {
					w.watched(at, object.ResourceVersion)
					delete(gone, at)
				}
			}
			for at := range gone {
				w.watched(at, "")
			}
		},
	}
}

// listed has all compared once each watch has listed its objects. If no watch may list, it emits a Warning.
func (w *Writer) listed(ctx context.Context, watches []*watch) {
	if slices.ContainsFunc(watches, (*watch).Pending) {
		if !slices.ContainsFunc(watches, func(one *watch) bool { return !one.Refused() }) {
			w.refuse(ctx, "", errUnlisted)
		}
		return
	}
	w.mu.Lock()
	first := !w.filled
	w.filled = true
	w.mu.Unlock()
	if first {
		w.compareAll()
	}
}

// errUnlisted is the refusal of a list, as the API server words it.
var errUnlisted = refusal.Plain(&apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
	Message: report.Resource + ` is forbidden: User "configstamp" cannot list resource "` + report.Resource + `"`,
}})

// empty deletes all objects from memory: the API server no longer serves them.
func (w *Writer) empty() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.filled, w.objects = false, map[rollout.SourceRef]seen{}
}

// objectsIn returns the objects of one namespace, or all ("").
func (w *Writer) objectsIn(namespace string) map[rollout.SourceRef]seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	objects := maps.Clone(w.objects)
	maps.DeleteFunc(objects, func(at rollout.SourceRef, _ seen) bool {
		return namespace != metav1.NamespaceAll && namespace != at.Namespace
	})
	return objects
}

// watched stores the version of an object, "" for a deletion. A version that we did not write is compared.
func (w *Writer) watched(at rollout.SourceRef, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	object := w.objects[at]
	if object.version = version; version == "" {
		delete(w.objects, at)
	} else {
		w.objects[at] = object
	}
	if w.filled && version != object.written {
		w.queue.Add(at)
	}
}

// sourceOf returns the source of an object by its name. A name that was cut is that of a source in use; else
// it is taken as it is.
func (w *Writer) sourceOf(namespace, name string) (at rollout.SourceRef, ok bool) {
	source, ok := report.SourceOf(name)
	if ok && report.MayBeCut(name) {
		for _, at := range w.Sources() {
			if at.Namespace == namespace && report.NameOf(at.Source) == name {
				return at, true
			}
		}
	}
	return rollout.SourceRef{Namespace: namespace, Source: source}, ok
}

// object returns what is known of an object, whether it exists, and whether all objects are listed.
func (w *Writer) object(at rollout.SourceRef) (object seen, exists, filled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	object, exists = w.objects[at]
	return object, exists, w.filled
}

// note stores an object after a comparison; written is "" if there is to be none. The version stays that of
// the watch.
func (w *Writer) note(at rollout.SourceRef, object seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if object.version = w.objects[at].version; object.version == "" && object.written == "" {
		delete(w.objects, at)
		return
	}
	w.objects[at] = object
}
