package impact

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/forecast"
	"github.com/configstamp/configstamp/internal/rollout"
)

var (
	errNotServed  = errors.New("it is no UPDATE or DELETE of a ConfigMap or Secret")
	errUnreadable = errors.New("an object cannot be read")
	errManyKeys   = fmt.Errorf("an object has more than %d keys", mostKeys)
)

// mostKeys bounds the memory that an edit takes beside its own bytes.
const mostKeys = 4096

// editOf reads what a request does to a source. Values are hashed where they lie. Errors
// quote nothing.
func editOf(request *admissionv1.AdmissionRequest) (edit forecast.Edit, err error) {
	kind, served := kindOf(request)
	if !served || request.Operation != admissionv1.Update && request.Operation != admissionv1.Delete {
		return edit, errNotServed
	}
	was, err := read(kind, request.OldObject.Raw)
	if err != nil {
		return edit, err
	}
	// The name of a request is empty where a collection is deleted.
	edit.At = rollout.SourceRef{Namespace: request.Namespace, Source: checksum.Source{Kind: kind, Name: was.Metadata.Name}}
	edit.Was, edit.Is = was.content(), nil
	switch {
	case request.Operation == admissionv1.Update:
		is, err := read(kind, request.Object.Raw)
		if err != nil {
			return edit, err
		}
		edit.Is = is.content()
	case was.Metadata.Ends != nil:
		edit.Is = edit.Was // it was deleted before, and a finalizer keeps it
	}
	return edit, nil
}

func kindOf(request *admissionv1.AdmissionRequest) (checksum.Kind, bool) {
	if request.SubResource != "" || request.Resource.Group != "" {
		return "", false
	}
	switch request.Resource.Resource {
	case "configmaps":
		return checksum.ConfigMap, true
	case "secrets":
		return checksum.Secret, true
	}
	return "", false
}

// object is what is read of a ConfigMap or a Secret.
type object struct {
	Metadata struct {
		Name        string        `json:"name"`
		Ends        *metav1.Time  `json:"deletionTimestamp"`
		Annotations ofSource      `json:"annotations"`
	} `json:"metadata"`
	Type       string `json:"type"`
	Data       values `json:"data"`
	BinaryData encoded `json:"binaryData"`
}
