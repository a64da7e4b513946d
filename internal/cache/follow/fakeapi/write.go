package fakeapi

import (
	"encoding/json"
	"errors"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// written returns an object as a GET finds it, or as a POST, PUT or PATCH stores it; the caller holds
// the lock. An update at another resourceVersion, or at none, is refused. A patch that changes
// nothing is no event.
func (s *Server) written(r *http.Request, to target, body []byte) (runtime.Object, *apierrors.StatusError) {
	var sent runtime.Object
	var err error
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if sent, _, err = s.codec.UniversalDeserializer().Decode(body, nil, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		to.name = accessorOf(sent).GetName()
	}
	of := schema.GroupResource{Resource: to.resource}
	stored := s.objects[to.resource][to.namespace+"/"+to.name]
	switch {
	case r.Method == http.MethodPost && stored != nil:
		return nil, apierrors.NewAlreadyExists(of, to.name)
	case r.Method == http.MethodPost:
		return s.put(to.resource, sent), nil
	case stored == nil:
		return nil, apierrors.NewNotFound(of, to.name)
	case r.Method == http.MethodGet:
		return stored, nil
	case r.Method == http.MethodPatch:
		if sent, err = s.patched(to.resource, stored, types.PatchType(r.Header.Get("Content-Type")), body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case r.Method != http.MethodPut:
		return nil, apierrors.NewMethodNotSupported(of, r.Method)
	}
	if accessorOf(sent).GetResourceVersion() != accessorOf(stored).GetResourceVersion() {
		return nil, apierrors.NewConflict(of, to.name, errors.New("the object has been modified"))
	}
	if equality.Semantic.DeepEqual(sent, stored) {
		return stored, nil
	}
	return s.put(to.resource, sent), nil
}

// patched returns a copy of an object with a merge patch or a strategic one applied.
func (s *Server) patched(resource string, obj runtime.Object, kind types.PatchType, patch []byte) (runtime.Object, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	switch kind {
	case types.MergePatchType:
		text, err = jsonpatch.MergePatch(text, patch)
	case types.StrategicMergePatchType:
		text, err = strategicpatch.StrategicMergePatch(text, patch, obj)
	default:
		err = errors.New("fakeapi cannot apply a patch of type " + string(kind))
	}
	if err != nil {
		return nil, err
	}
	after := s.newObject(resource, "")
	return after, json.Unmarshal(text, after)
}
