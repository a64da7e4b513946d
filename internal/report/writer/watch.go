package writer

import (
	"context"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/discovery"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/refusal"
	"github.com/configstamp/configstamp/internal/report"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// metadataWatch has the API server send no more than metadata in watches. A list, as servers without
// WatchList need one, brings whole objects, of which condense keeps no more.
type metadataWatch struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (m metadataWatch) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		request = request.Clone(request.Context())
		request.Header.Set("Accept", metadataAlone)
	}
	return m.RoundTripper.RoundTrip(request)
}

func condense(data []byte) (runtime.Object, error) {
	object, err := (&workload.Kind{}).DecodeMetadata(data)
	if err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, ResourceVersion: object.ResourceVersion}}, nil
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
		Resource: report.Resource, Namespace: namespace, Clock: w.Clock,
		Event: func(object *metav1.PartialObjectMetadata, deleted bool) {
			version := object.ResourceVersion
			if deleted {
				version = ""
			}
			w.watched(object.Namespace, object.Name, version)
		},
		All: func(objects []*metav1.PartialObjectMetadata, _ string) {
			gone := w.objectsIn(namespace)
			for _, object := range objects {
				w.watched(object.Namespace, object.Name, object.ResourceVersion)
				delete(gone, types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
			}
			for object := range gone {
				w.watched(object.Namespace, object.Name, "")
			}
		},
	}
}

// listed has all compared once all objects are known. If none may be listed, people are warned.
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

// errUnlisted says that there is no right to list ConfigRollouts.
var errUnlisted = refusal.Plain(&apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
	Message: report.Resource + ` is forbidden: User "configstamp" cannot list resource "` + report.Resource + `"`,
}})

// empty forgets all objects, as they are not served any more.
func (w *Writer) empty() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.filled, w.objects = false, map[rollout.SourceRef]seen{}
}

// objectsIn returns the objects of one namespace, or all ("").
func (w *Writer) objectsIn(namespace string) map[types.NamespacedName]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	objects := map[types.NamespacedName]bool{}
	for at := range w.objects {
		if namespace == metav1.NamespaceAll || namespace == at.Namespace {
			objects[types.NamespacedName{Namespace: at.Namespace, Name: report.NameOf(at.Source)}] = true
		}
	}
	return objects
}

// watched notes the version of an object, "" for a deletion. What we did not write ourselves is compared.
func (w *Writer) watched(namespace, name, version string) {
	source, ok := w.sourceOf(namespace, name)
	if !ok {
		return
	}
	at := rollout.SourceRef{Namespace: namespace, Source: source}
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

// sourceOf returns the source of an object by its name. A name that was cut is that of a source in use, or
// of none that is reported on.
func (w *Writer) sourceOf(namespace, name string) (source checksum.Source, ok bool) {
	if source, ok = report.SourceOf(name); ok && !report.MayBeCut(name) {
		return source, true
	}
	for _, at := range w.Sources() {
		if at.Namespace == namespace && report.NameOf(at.Source) == name {
			return at.Source, true
		}
	}
	return source, ok
}

// object returns what is known of an object, whether it exists, and whether it is known which exist.
func (w *Writer) object(at rollout.SourceRef) (object seen, exists, filled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	object, exists = w.objects[at]
	return object, exists, w.filled
}

// note keeps what an object says now; written is "" if there is to be none. The version is the watch's.
func (w *Writer) note(at rollout.SourceRef, object seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if object.version = w.objects[at].version; object.version == "" && object.written == "" {
		delete(w.objects, at)
		return
	}
	w.objects[at] = object
}
