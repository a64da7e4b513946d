package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/internal/workload/wire"
)

var errInto = errors.New("a condensing client cannot decode into a given object: use Do(ctx).Get(); for the bytes Do(ctx), then Error(), then Raw()")

// protobufDecoder hands out the message of each object; inner decodes what is not one,
// and what came as JSON, which encoder then writes as protobuf.
type protobufDecoder struct {
	inner    runtime.Decoder
	encoder  runtime.Encoder
	condense func(kind string, message []byte) (runtime.Object, error)
}

// Decode implements runtime.Decoder.
func (d protobufDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into != nil {
		return nil, nil, errInto
	}
	if !wire.Is(data) {
		obj, gvk, err := d.inner.Decode(data, defaults, nil)
		if err != nil || passes(*gvk) {
			return obj, gvk, err
		}
		if data, err = runtime.Encode(d.encoder, obj); err != nil {
			return nil, gvk, fmt.Errorf("writing an object of type %T as protobuf: %w", obj, err)
		}
	}
	object, err := wire.Open(data)
	if err != nil {
		return nil, nil, fmt.Errorf("reading an object of %d bytes: %w", len(data), err)
	}
	gvk := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	if passes(gvk) {
		return d.inner.Decode(data, defaults, nil)
	}
	if kind, isList := strings.CutSuffix(object.Kind, "List"); isList {
		list, err := d.list(kind, object.Message)
		return list, &gvk, err
	}
	condensed, err := d.one(object.Kind, object.Message)
	return condensed, &gvk, err
}

// passes tells what is no object of those that are watched, but says something of them.
func passes(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "" || gvk.Kind == "Status" && gvk.Group == "" || gvk.Group == metav1.GroupName
}

// one condenses an object, or a bookmark.
func (d protobufDecoder) one(kind string, message []byte) (runtime.Object, error) {
	named := false
	err := eachOfMetadata(message, func(metadata []byte) error {
		return wire.Each(metadata, func(number int, text []byte) error {
			if number == 1 {
				named = len(text) > 0
			}
			return nil
		})
	})
	if err == nil && !named {
		var meta metav1.ObjectMeta
		err = eachOfMetadata(message, meta.Unmarshal)
		return bookmark(meta.ResourceVersion, meta.Annotations), err
	}
	var condensed runtime.Object
	if err == nil {
		condensed, err = d.condense(kind, message)
	}
	if err != nil {
		return nil, fmt.Errorf("condensing a %s of %d bytes: %w", kind, len(message), err)
	}
	return condensed, nil
}

// eachOfMetadata gives out the metadata of any object or list: its first field.
func eachOfMetadata(message []byte, found func([]byte) error) error {
	return wire.Each(message, func(number int, value []byte) error {
		if number != 1 {
			return nil
		}
		return found(value)
	})
}

func (d protobufDecoder) list(kind string, message []byte) (runtime.Object, error) {
	var meta metav1.ListMeta
	var items []runtime.RawExtension
	err := wire.Each(message, func(number int, value []byte) error {
		switch number {
		case 1:
			return meta.Unmarshal(value)
		case 2:
			condensed, err := d.condense(kind, value)
			items = append(items, runtime.RawExtension{Object: condensed})
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("condensing a list of %s of %d bytes: %w", kind, len(message), err)
	}
	list := newList(meta.ResourceVersion, meta.Continue, meta.RemainingItemCount, 0)
	list.Items = items
	return list, nil
}

// eitherDecoder has each object decoded in the form in which it came.
type eitherDecoder struct {
	protobuf protobufDecoder
	json     rawDecoder
}

// Decode implements runtime.Decoder.
func (d eitherDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if wire.Is(data) {
		return d.protobuf.Decode(data, defaults, into)
	}
	return d.json.Decode(data, defaults, into)
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
