package fakeapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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
type target struct{ resource, namespace, name string }

func parsePath(path string) (to target) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" {
		parts = parts[1:]
	}
	if parts = parts[2:]; parts[0] == "namespaces" && len(parts) > 2 { // else a Namespace itself
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
	if refusal := s.refusalOf(r); refusal != nil {
		s.fail(w, r, refusal)
		return
	}
	if s.Intercept != nil && s.Intercept(w, r) {
		return
	}
	to, query := parsePath(r.URL.Path), r.URL.Query()
	switch {
	case r.Method != http.MethodGet, to.name != "":
		s.one(w, r, to)
	case query.Get("watch") != "":
		s.watch(w, r, to, query)
	default:
		s.list(w, r, to, query)
	}
}

func (s *Server) refusalOf(r *http.Request) *apierrors.StatusError {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, refusal := range s.refusals {
		if refusal.err != nil && refusal.pattern.MatchString(r.Method+" "+r.URL.Path) {
			refusal.times.Add(1)
			return refusal.err
		}
	}
	return nil
}

// one reads or writes one object.
func (s *Server) one(w http.ResponseWriter, r *http.Request, to target) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone
	}
	s.mu.Lock()
	obj, refusal := s.written(r, to, body)
	s.mu.Unlock()
	if refusal != nil {
		s.fail(w, r, refusal)
		return
	}
	s.answer(w, r, http.StatusOK, requestedPart(r, obj))
}

// requestedPart returns an object, or its metadata if the request asks for that alone.
func requestedPart(r *http.Request, obj runtime.Object) runtime.Object {
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return meta.AsPartialObjectMetadata(accessorOf(obj))
	}
	return obj
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
		s.answer(w, r, http.StatusOK, s.newList(to.resource, page, listMeta))
		return
	}
	metadata := &metav1.PartialObjectMetadataList{ListMeta: listMeta}
	for _, obj := range page {
		metadata.Items = append(metadata.Items, *meta.AsPartialObjectMetadata(accessorOf(obj)))
	}
	s.answer(w, r, http.StatusOK, metadata)
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
	frames := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), s.encoder(info.StreamSerializer.Serializer))
	for {
		for _, e := range events {
			if e.resource != "" && (e.version < from || e.resource != to.resource || e.kind != watch.Bookmark && !matches(e.object, to, query)) {
				continue
			}
			frame := &metav1.WatchEvent{Type: string(e.kind), Object: runtime.RawExtension{Raw: s.encode(info, requestedPart(r, e.object))}}
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

// encoder writes the kind of each object, as registered.
func (s *Server) encoder(to runtime.Encoder) runtime.Encoder {
	return s.codec.WithoutConversion().EncoderForVersion(to, nil)
}

func (s *Server) encode(info runtime.SerializerInfo, obj runtime.Object) []byte {
	data, err := runtime.Encode(s.encoder(info.Serializer), obj.DeepCopyObject()) // it writes the kind into it
	if err != nil {
		panic(err)
	}
	return data
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object) {
	info := s.negotiate(r)
	w.Header().Set("Content-Type", info.MediaType)
	w.WriteHeader(code)
	_, _ = w.Write(s.encode(info, obj))
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err *apierrors.StatusError) {
	status := err.Status()
	s.answer(w, r, int(status.Code), &status)
}
