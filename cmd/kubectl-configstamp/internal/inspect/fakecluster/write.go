package fakecluster

import (
	"encoding/json"
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
	text, err := io.ReadAll(r.Body)
	body := map[string]any{}
	after := before.DeepCopy()
	if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
		err = errors.Join(err, operate(after, text))
	} else {
		err = errors.Join(err, json.Unmarshal(text, &body))
		merge(after.Object, body)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	query := r.URL.Query()
	dry := query.Get("dryRun") == "All"
	if version, found, _ := unstructured.NestedString(body, "metadata", "resourceVersion"); found && version != before.GetResourceVersion() {
		fail(w, http.StatusConflict, "Conflict", fmt.Sprintf("Operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again", to.resource, to.name))
		return
	}
	warnings, err := s.admit(to.resource, query, after, dry)
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	for _, warning := range warnings {
		w.Header().Add("Warning", "299 - "+strconv.Quote(warning))
	}
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

// operate applies a JSON patch (RFC 6902).
func operate(object *unstructured.Unstructured, operations []byte) error {
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return err
	}
	before, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return err
	}
	return object.UnmarshalJSON(after)
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
	return s.Everywhere || object.GetLabels()[label] == "enabled" || namespace != nil && namespace.GetLabels()[label] == "enabled"
}

// merge is RFC 7396.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap:
			below, ok := into[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				into[key] = below
			}
			merge(below, inner)
		default:
			into[key] = value
		}
	}
}
