package fakeapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
)

// target is what the path of a request names.
type target struct {
	gv                        schema.GroupVersion
	resource, namespace, name string
}

func parsePath(path string) target {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	to := target{gv: corev1.SchemeGroupVersion}
	if parts[0] == "apis" {
		to.gv, parts = appsv1.SchemeGroupVersion, parts[3:]
	} else {
		parts = parts[2:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 { // else a Namespace itself
		to.namespace, parts = parts[1], parts[2:]
	}
	to.resource = parts[0]
	if len(parts) > 1 {
		to.name = parts[1]
	}
	return to
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if s.Intercept != nil && s.Intercept(w, r) {
		return
	}
	to, query := parsePath(r.URL.Path), r.URL.Query()
	switch {
	case r.Method == http.MethodPatch, to.name != "":
		_, _ = io.Copy(io.Discard, r.Body)
		s.one(w, r, to)
	case query.Get("watch") != "":
		s.watch(w, r, to, query)
	default:
		s.list(w, r, to, query)
	}
}

func (s *Server) one(w http.ResponseWriter, r *http.Request, to target) {
	s.mu.Lock()
	obj := s.objects[to.resource][to.namespace+"/"+to.name]
	s.mu.Unlock()
	if obj == nil {
		s.fail(w, r, apierrors.NewNotFound(schema.GroupResource{Resource: to.resource}, to.name))
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		obj, to.gv = meta.AsPartialObjectMetadata(accessorOf(obj)), metav1.SchemeGroupVersion
	}
	s.answer(w, r, http.StatusOK, to.gv, obj)
}

// matching lists what a request asks for; the caller holds the lock.
func (s *Server) matching(to target, query url.Values) []runtime.Object {
	return slices.DeleteFunc(sorted(s.objects[to.resource]), func(obj runtime.Object) bool { return !matches(obj, to, query) })
}

func matches(obj runtime.Object, to target, query url.Values) bool {
	accessor := accessorOf(obj)
	set := fields.Set{"metadata.name": accessor.GetName()}
	if secret, ok := obj.(*corev1.Secret); ok {
		set["type"] = string(secret.Type)
	}
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		panic(err)
	}
	return (to.namespace == "" || accessor.GetNamespace() == to.namespace) && selector.Matches(set)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, to target, query url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.matching(to, query)
	version, from := s.version, 0
	if token := query.Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d-%d", &version, &from); err != nil {
			panic(err)
		}
		if version < s.compacted {
			s.fail(w, r, apierrors.NewResourceExpired("the continue token is too old"))
			return
		}
	}
	listMeta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(version, 10)}
	end := len(all)
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 && from+limit < end {
		end = from + limit
		remaining := int64(len(all) - end)
		listMeta.Continue, listMeta.RemainingItemCount = fmt.Sprintf("%d-%d", version, end), &remaining
	}
	page := all[min(from, end):end]
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		s.answer(w, r, http.StatusOK, to.gv, s.newList(to.resource, page, listMeta))
		return
	}
	metadata := &metav1.PartialObjectMetadataList{ListMeta: listMeta}
	for _, obj := range page {
		metadata.Items = append(metadata.Items, *meta.AsPartialObjectMetadata(accessorOf(obj)))
	}
	s.answer(w, r, http.StatusOK, metav1.SchemeGroupVersion, metadata)
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, to target, query url.Values) {
	initial := query.Get("sendInitialEvents") == "true"
	from, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	s.mu.Lock()
	cut := s.cut
	var events []event
	var refusal *apierrors.StatusError
	switch {
	case initial && s.RefuseWatchList:
		refusal = apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil)
	case initial && from > s.version:
		refusal = apierrors.NewTimeoutError("Too large resource version", 1)
		refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	case !initial && from < s.compacted:
		refusal = apierrors.NewResourceExpired("too old resource version")
	case initial:
		from = s.version
		for _, obj := range s.matching(to, query) {
			events = append(events, event{kind: watch.Added, object: obj})
		}
		events = append(events, event{kind: watch.Bookmark, object: s.bookmark(to.resource, map[string]string{metav1.InitialEventsAnnotationKey: "true"})})
	}
	// Start after the last event that was sent already.
	next := slices.IndexFunc(s.history, func(e event) bool { return e.version > from })
	if next < 0 {
		next = len(s.history)
	}
	s.mu.Unlock()
	if refusal != nil {
		s.fail(w, r, refusal)
		return
	}
	info := s.negotiate(r)
	w.Header().Set("Content-Type", info.MediaType)
	w.WriteHeader(http.StatusOK)
	encoder := s.codec.WithoutConversion().EncoderForVersion(info.StreamSerializer.Serializer, to.gv)
	frames := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), encoder)
	for {
		for _, e := range events {
			if e.resource != "" && (e.version < from || e.resource != to.resource || e.kind != watch.Bookmark && !matches(e.object, to, query)) {
				continue
			}
			frame := &metav1.WatchEvent{Type: string(e.kind), Object: runtime.RawExtension{Raw: s.encode(info, to.gv, e.object)}}
			if frames.Encode(frame) != nil {
				return
			}
		}
		_ = http.NewResponseController(w).Flush()
		s.mu.Lock()
		events = slices.Clone(s.history[min(next, len(s.history)):])
		next = len(s.history)
		moved := s.moved
		s.mu.Unlock()
		if len(events) > 0 {
			continue
		}
		select {
		case <-moved:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) negotiate(r *http.Request) runtime.SerializerInfo {
	accept, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	accept, _, _ = strings.Cut(accept, ";")
	info, ok := runtime.SerializerInfoForMediaType(s.codec.SupportedMediaTypes(), accept)
	if !ok {
		panic("fakeapi: cannot answer with " + accept)
	}
	return info
}

func (s *Server) encode(info runtime.SerializerInfo, gv schema.GroupVersion, obj runtime.Object) []byte {
	if _, ok := obj.(*metav1.Status); ok {
		gv = corev1.SchemeGroupVersion
	}
	data, err := runtime.Encode(s.codec.WithoutConversion().EncoderForVersion(info.Serializer, gv), obj.DeepCopyObject()) // it writes the kind into it
	if err != nil {
		panic(err)
	}
	return data
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, code int, gv schema.GroupVersion, obj runtime.Object) {
	info := s.negotiate(r)
	w.Header().Set("Content-Type", info.MediaType)
	w.WriteHeader(code)
	_, _ = w.Write(s.encode(info, gv, obj))
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err *apierrors.StatusError) {
	status := err.Status()
	s.answer(w, r, int(status.Code), corev1.SchemeGroupVersion, &status)
}
