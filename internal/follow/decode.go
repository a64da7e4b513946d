package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errInto = errors.New("a condensing client cannot decode into a given object: use Do(ctx).Get(); for the bytes Do(ctx), then Error(), then Raw()")

// typedDecoder decodes with inner and condenses what it gives.
type typedDecoder struct {
	inner    runtime.Decoder
	condense func(runtime.Object) (runtime.Object, error)
}

// Decode implements runtime.Decoder.
func (d typedDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil {
		return nil, nil, errInto
	}
	obj, gvk, err := d.inner.Decode(data, defaults, nil)
	if err != nil {
		return nil, gvk, err
	}
	switch obj.(type) {
	case *metav1.Status, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return obj, gvk, nil
	}
	if meta.IsListType(obj) {
		list, err := d.list(obj)
		return list, gvk, err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, gvk, fmt.Errorf("condensing an object of type %T: %w", obj, err)
	}
	if accessor.GetName() == "" {
		return bookmark(accessor.GetResourceVersion(), accessor.GetAnnotations()), gvk, nil
	}
	condensed, err := d.one(obj)
	return condensed, gvk, err
}

func (d typedDecoder) one(obj runtime.Object) (runtime.Object, error) {
	condensed, err := d.condense(obj)
	if err != nil {
		return nil, fmt.Errorf("condensing an object of type %T: %w", obj, err)
	}
	return condensed, nil
}

func (d typedDecoder) list(obj runtime.Object) (runtime.Object, error) {
	accessor, err := meta.ListAccessor(obj)
	if err != nil {
		return nil, fmt.Errorf("condensing a list of type %T: %w", obj, err)
	}
	list := newList(accessor.GetResourceVersion(), accessor.GetContinue(), accessor.GetRemainingItemCount(), meta.LenList(obj))
	err = meta.EachListItem(obj, func(item runtime.Object) error {
		condensed, err := d.one(item)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, runtime.RawExtension{Object: condensed})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// rawDecoder hands out the text of each object; inner decodes what is not one:
// Status and what was asked for as PartialObjectMetadata.
type rawDecoder struct {
	inner    runtime.Decoder
	condense func([]byte) (runtime.Object, error)
}

// head is what has to be known of a text before it is handed out.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name               string          `json:"name"`
		ResourceVersion    string          `json:"resourceVersion"`
		Continue           string          `json:"continue"`
		RemainingItemCount *int64          `json:"remainingItemCount"`
		Annotations        json.RawMessage `json:"annotations"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// Decode implements runtime.Decoder.
func (d rawDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil {
		return nil, nil, errInto
	}
	var h struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := unmarshal(data, &h); err != nil {
		return nil, nil, fmt.Errorf("reading an object of %d bytes: %w", len(data), err)
	}
	gvk := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind)
	if (h.Kind == "Status" && gvk.Group == "") || gvk.Group == metav1.GroupName {
		return d.inner.Decode(data, defaults, nil)
	}
	if h.Metadata.Name == "" {
		obj, err := d.nameless(data, strings.HasSuffix(h.Kind, "List"))
		return obj, &gvk, err
	}
	condensed, err := d.one(data)
	return condensed, &gvk, err
}

func (d rawDecoder) one(data []byte) (runtime.Object, error) {
	condensed, err := d.condense(data)
	if err != nil {
		return nil, fmt.Errorf("condensing an object of %d bytes: %w", len(data), err)
	}
	return condensed, nil
}

// nameless reads a list or a bookmark.
func (d rawDecoder) nameless(data []byte, isList bool) (runtime.Object, error) {
	var h head
	if err := unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("reading a list or bookmark of %d bytes: %w", len(data), err)
	}
	if !isList {
		var annotations map[string]string
		if len(h.Metadata.Annotations) > 0 {
			if err := json.Unmarshal(h.Metadata.Annotations, &annotations); err != nil {
				return nil, fmt.Errorf("reading the annotations of a bookmark: %w", err)
			}
		}
		return bookmark(h.Metadata.ResourceVersion, annotations), nil
	}
	list := newList(h.Metadata.ResourceVersion, h.Metadata.Continue, h.Metadata.RemainingItemCount, len(h.Items))
	for i, item := range h.Items {
		condensed, err := d.one(item)
		if err != nil {
			return nil, fmt.Errorf("item %d of a list: %w", i, err)
		}
		list.Items = append(list.Items, runtime.RawExtension{Object: condensed})
		h.Items[i] = nil
	}
	return list, nil
}

// unmarshal reads JSON by field names with their case, as the API server does.
func unmarshal(data []byte, into any) error {
	return jsonv2.Unmarshal(data, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func newList(resourceVersion, next string, remaining *int64, size int) *metav1.List {
	return &metav1.List{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"},
		ListMeta: metav1.ListMeta{ResourceVersion: resourceVersion, Continue: next, RemainingItemCount: remaining},
		Items:    make([]runtime.RawExtension, 0, size),
	}
}

func bookmark(resourceVersion string, annotations map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: resourceVersion, Annotations: annotations}}
}
