package follow

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// codecs are those of a client, with streams that hold one event at a time (forget.go) and with
// errors that quote nothing.
type codecs struct {
	runtime.NegotiatedSerializer
	// kinds are those that are read from protobuf in place; nil: none.
	kinds runtime.ObjectCreater
	// metadata decodes the metadata of an object that cannot be decoded; nil returns the error.
	metadata runtime.Decoder
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(c.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if infos[i].StreamSerializer != nil {
			stream := *infos[i].StreamSerializer
			stream.Framer = wipingFramer{stream.Framer}
			if infos[i].MediaType == runtime.ContentTypeProtobuf {
				stream.Serializer = events{stream.Serializer}
			}
			infos[i].StreamSerializer = &stream
		}
	}
	return infos
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (c codecs) DecoderToVersion(inner runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return decoder{c.NegotiatedSerializer.DecoderToVersion(inner, gv), c.kinds, c.metadata}
}

type decoder struct {
	runtime.Decoder
	kinds    runtime.ObjectCreater
	metadata runtime.Decoder
}

// Decode implements runtime.Decoder. Errors of the inner decoder may quote the object, which may
// be a Secret.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil && d.kinds != nil {
		if object, gvk, ok := inPlace(data, d.kinds); ok {
			return object, gvk, nil
		}
	}
	object, gvk, err := d.Decoder.Decode(data, defaults, into)
	if err == nil {
		return object, gvk, nil
	}
	if d.metadata != nil && into == nil && gvk != nil {
		into = &metav1.PartialObjectMetadata{}
		if strings.HasSuffix(gvk.Kind, "List") {
			into = &metav1.PartialObjectMetadataList{}
		}
		if object, _, err := d.metadata.Decode(data, gvk, into); err == nil {
			return object, gvk, nil
		}
	}
	return nil, gvk, fmt.Errorf("reading an object of %d bytes: it does not have the form of its kind", len(data))
}
