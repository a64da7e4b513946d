package fakecluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Write is one patch that was not a dry run.
type Write struct {
	Path, Manager, Body string
}

// Writes lists the patches so far that were no dry runs.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Write(nil), s.writes...)
}

// patch answers a merge patch, or a JSON patch: it is applied, handed to Admit, and stored
// unless it is a dry run. A resourceVersion in a merge patch has to be the newest.
func (s *Server) patch(w http.ResponseWriter, r *http.Request, to *target, metadata bool) {
	s.mu.Lock()
	before := s.objects[r.URL.Path]
	s.mu.Unlock()
	text, _ := io.ReadAll(r.Body)
	after, err := patched(before, types.PatchType(r.Header.Get("Content-Type")), text)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	query := r.URL.Query()
	dry := query.Get("dryRun") == "All"
	if after.GetResourceVersion() != before.GetResourceVersion() { // one that the patch gave
		fail(w, http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again", to.resource, to.name))
		return
	}
	warnings, err := s.admit(to.resource, query, after, dry)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	warn(w, warnings)
	if changed := !equality.Semantic.DeepEqual(before.Object, after.Object); !dry {
		s.mu.Lock()
		s.writes = append(s.writes, Write{r.URL.Path, query.Get("fieldManager"), string(text)})
		s.mu.Unlock()
		if changed {
			if !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) {
				after.SetGeneration(after.GetGeneration() + 1)
			}
			s.Put(after)
		}
	}
	answer(w, http.StatusOK, part(after, metadata))
}

// create answers the dry run of a creation, with the warnings of Admit. Nothing is stored.
func (s *Server) create(w http.ResponseWriter, r *http.Request, to *target) {
	text, err := io.ReadAll(r.Body)
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err == nil && r.URL.Query().Get("dryRun") != "All" {
		err = errors.New("only dry runs of creations are answered")
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	warnings, err := s.admit(to.resource, r.URL.Query(), object, true)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	warn(w, warnings)
	answer(w, http.StatusCreated, object.Object)
}

func warn(w http.ResponseWriter, warnings []string) {
	for _, warning := range warnings {
		w.Header().Add("Warning", "299 - "+strconv.Quote(warning))
	}
}

// patched is an object with a JSON patch (RFC 6902), or a merge patch (RFC 7396), applied.
func patched(object *unstructured.Unstructured, kind types.PatchType, patch []byte) (*unstructured.Unstructured, error) {
	before, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	apply := func() ([]byte, error) { return jsonpatch.MergePatch(before, patch) }
	if kind == types.JSONPatchType {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		apply = func() ([]byte, error) { return operations.Apply(before) }
	}
	text, err := apply()
	if err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(text)
}

// admit has the test's webhook answer: Dry of a dry run of a rolling re-admission, Admit of
// what is written, and of what is meant to be by the dry run of anything else.
func (s *Server) admit(resource string, query url.Values, object *unstructured.Unstructured, dry bool) ([]string, error) {
	if dry && query.Get("fieldManager") == "configstamp" {
		if s.Dry == nil || !s.selects(object) {
			return nil, nil
		}
		return s.Dry(resource, object)
	}
	if s.Admit == nil {
		return nil, nil
	}
	return s.Admit(query.Get("fieldManager"), object)
}

// selects reports whether the test's webhook is called for an object: a label of it or of its
// Namespace opts it in, or the webhook serves all namespaces.
func (s *Server) selects(object *unstructured.Unstructured) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	const label = "configstamp.dev/inject"
	namespace := s.objects["/api/v1/namespaces/"+object.GetNamespace()]
	if object.GetLabels()[label] == "disabled" {
		return false
	}
	return s.Everywhere || object.GetLabels()[label] == "enabled" || namespace != nil && namespace.GetLabels()[label] == "enabled"
}
