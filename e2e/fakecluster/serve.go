package fakecluster

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// UID is the UID of an object that was given none.
func UID(name string) types.UID { return types.UID("uid-of-" + name) }

// target is what a path names.
type target struct{ group, version, namespace, resource, name string }

func parsePath(path string) *target {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	to := &target{}
	if parts[0] == "apis" {
		to.group, parts = parts[1], parts[1:]
	}
	to.version, parts = parts[1], parts[2:]
	if len(parts) > 2 && parts[0] == "namespaces" {
		to.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 0 {
		to.resource = parts[0]
	}
	if len(parts) > 1 {
		to.name = parts[1]
	}
	return to
}

func pathOf(object *unstructured.Unstructured) string {
	group, version, found := strings.Cut(object.GetAPIVersion(), "/")
	path := "/apis/" + group + "/" + version
	if !found {
		path = "/api/" + group
	}
	if object.GetNamespace() != "" {
		path += "/namespaces/" + object.GetNamespace()
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return path + "/" + resource.Resource + "/" + object.GetName()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.stopped.Load() {
		panic(http.ErrAbortHandler) // which ends the connection without an answer
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if !s.Now.IsZero() {
		w.Header().Set("Date", s.Now.UTC().Format(http.TimeFormat))
	}
	switch r.URL.Path {
	case "/api":
		answer(w, http.StatusOK, map[string]any{"kind": "APIVersions", "apiVersion": "v1", "versions": []string{"v1"}})
		return
	case "/apis":
		s.discoverGroups(w)
		return
	}
	to := parsePath(r.URL.Path)
	verb := map[string]string{http.MethodGet: "get", http.MethodPatch: "patch", http.MethodPost: "create", http.MethodDelete: "delete"}[r.Method]
	if verb == "get" && to.name == "" {
		verb = "list"
	}
	metadata := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
	if s.Intercept != nil {
		s.Intercept(to.resource, r.Header.Get("Accept"))
	}
	switch {
	case s.Dead != nil && s.Dead(to.group, to.resource):
		http.Error(w, "service unavailable", http.StatusServiceUnavailable) // as the API server does
	case to.resource == "":
		s.discover(w, to)
	case to.resource == "selfsubjectaccessreviews":
		s.review(w, r)
	case to.resource == "selfsubjectreviews":
		answer(w, http.StatusCreated, map[string]any{"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"userInfo": map[string]any{"username": "jane"}}})
	case s.Forbid != nil && s.Forbid(verb, to.resource, to.namespace):
		fail(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q", to.resource, "jane", verb, to.resource, to.group))
	case to.name == "" && strings.Contains(to.group, ".") && s.serves(to.group, to.version)[to.resource] == "":
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case verb == "create":
		s.create(w, r, to)
	case to.name == "":
		s.list(w, to, r.URL.Query(), metadata)
	default:
		s.one(w, r, to, metadata)
	}
}

// review answers whether the user may do something.
func (s *Server) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SelfSubjectAccessReview
	body, err := io.ReadAll(r.Body)
	if err == nil { // client-go sends protobuf
		_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &review)
	}
	if err != nil || review.Spec.ResourceAttributes == nil {
		fail(w, http.StatusBadRequest, "BadRequest", "it asks nothing")
		return
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = s.Forbid == nil || !s.Forbid(asked.Verb, asked.Resource, asked.Namespace)
	answer(w, http.StatusCreated, review)
}

// builtin are the kinds that every cluster has, by group and version, whether objects of them are there or not.
func builtin(group, version string) map[string]string {
	return map[string]map[string]string{
		"/v1":      {"namespaces": "Namespace", "configmaps": "ConfigMap", "secrets": "Secret", "pods": "Pod", "replicationcontrollers": "ReplicationController"},
		"apps/v1":  {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "replicasets": "ReplicaSet", "controllerrevisions": "ControllerRevision"},
		"batch/v1": {"jobs": "Job", "cronjobs": "CronJob"},
	}[group+"/"+version]
}

// discoverGroups lists the groups of all objects.
func (s *Server) discoverGroups(w http.ResponseWriter) {
	versions := map[string]string{"apps": "v1", "batch": "v1"}
	s.mu.Lock()
	for path := range s.objects {
		if of := parsePath(path); of.group != "" {
			versions[of.group] = of.version
		}
	}
	s.mu.Unlock()
	var groups []any
	for group, version := range versions {
		of := map[string]any{"groupVersion": group + "/" + version, "version": version}
		groups = append(groups, map[string]any{"name": group, "versions": []any{of}, "preferredVersion": of})
	}
	answer(w, http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

func (s *Server) discover(w http.ResponseWriter, to *target) {
	kinds := s.serves(to.group, to.version)
	maps.Copy(kinds, builtin(to.group, to.version))
	if len(kinds) == 0 {
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	var resources []any
	for resource, kind := range kinds {
		resources = append(resources, map[string]any{"name": resource, "kind": kind, "namespaced": kind != "Namespace"})
	}
	answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": strings.TrimPrefix(to.group+"/"+to.version, "/"), "resources": resources})
}

func (s *Server) one(w http.ResponseWriter, r *http.Request, to *target, metadata bool) {
	s.mu.Lock()
	object := s.objects[r.URL.Path]
	s.mu.Unlock()
	if object == nil {
		resource := strings.TrimSuffix(to.resource+"."+to.group, ".")
		answer(w, http.StatusNotFound, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound,
			"message": fmt.Sprintf("%s %q not found", resource, to.name), "details": map[string]any{"name": to.name, "kind": to.resource, "group": to.group},
		})
		return
	}
	if r.Method == http.MethodPatch {
		s.patch(w, r, to, metadata)
		return
	}
	if r.Method == http.MethodDelete {
		s.delete(w, r, object)
		return
	}
	answer(w, http.StatusOK, part(object, metadata))
}

// delete takes an object away, if it still is the one of the preconditions.
func (s *Server) delete(w http.ResponseWriter, r *http.Request, object *unstructured.Unstructured) {
	var options metav1.DeleteOptions
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil || options.Preconditions == nil {
		fail(w, http.StatusBadRequest, "BadRequest", "the options have no preconditions")
		return
	}
	if p := options.Preconditions; *p.UID != object.GetUID() || *p.ResourceVersion != object.GetResourceVersion() {
		fail(w, http.StatusConflict, "Conflict", "the preconditions do not hold")
		return
	}
	s.mu.Lock()
	delete(s.objects, r.URL.Path)
	s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
}

// part is an object, or its metadata.
func part(object *unstructured.Unstructured, metadata bool) map[string]any {
	if !metadata {
		return object.Object
	}
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.Object["metadata"]}
}

func (s *Server) list(w http.ResponseWriter, to *target, query url.Values, metadata bool) {
	byLabels, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	byFields := fields.ParseSelectorOrDie(query.Get("fieldSelector"))
	items := []any{}
	for _, object := range s.under(to) {
		if byLabels.Matches(labels.Set(object.GetLabels())) && byFields.Matches(fieldsOf(object)) {
			items = append(items, part(object, metadata))
		}
	}
	from, _ := strconv.Atoi(query.Get("continue"))
	end := len(items)
	meta := map[string]any{"resourceVersion": "1"}
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && from+limit < end {
		end = from + limit
		meta["continue"] = strconv.Itoa(end)
	}
	answer(w, http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items[from:end]})
}

func fieldsOf(object *unstructured.Unstructured) fields.Set {
	set := fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()}
	for _, field := range []string{"kind", "name", "namespace"} {
		set["involvedObject."+field], _, _ = unstructured.NestedString(object.Object, "involvedObject", field)
	}
	set["reason"], _, _ = unstructured.NestedString(object.Object, "reason")
	set["reportingComponent"], _, _ = unstructured.NestedString(object.Object, "reportingComponent")
	return set
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func fail(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}
