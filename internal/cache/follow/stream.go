package follow

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configstamp/configstamp/internal/workload/wire"
)

// lean has the streams of a media type hold one event at a time, and read no more of
// its frame than they must.
func lean(info runtime.SerializerInfo) runtime.SerializerInfo {
	if info.StreamSerializer == nil {
		return info
	}
	stream := *info.StreamSerializer
	stream.Framer = wipingFramer{stream.Framer}
	switch info.MediaType {
	case runtime.ContentTypeProtobuf:
		stream.Serializer = frameDecoder{stream.Serializer, openProtobuf}
	case runtime.ContentTypeJSON:
		stream.Serializer = frameDecoder{stream.Serializer, openJSON}
	}
	info.StreamSerializer = &stream
	return info
}

// frameDecoder takes the object of a watch event out of its frame. Kubernetes' own
// decoders make a copy of it (protobuf), or go through it four times (JSON).
type frameDecoder struct {
	runtime.Serializer
	open func(frame []byte, event *metav1.WatchEvent) error
}

// Decode implements runtime.Decoder.
func (d frameDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return d.Serializer.Decode(data, defaults, into)
	}
	if err := d.open(data, event); err != nil {
		return nil, nil, fmt.Errorf("reading a watch event of %d bytes: %w", len(data), err)
	}
	return event, defaults, nil
}

// openProtobuf lets the object lie in the frame: client-go has it decoded before it
// reads the next one.
func openProtobuf(frame []byte, event *metav1.WatchEvent) error {
	return wire.Each(frame, func(number int, value []byte) error {
		switch number {
		case 1:
			event.Type = string(value)
		case 2:
			return wire.Each(value, func(number int, raw []byte) error {
				if number == 1 {
					event.Object.Raw = raw
				}
				return nil
			})
		}
		return nil
	})
}

func openJSON(frame []byte, event *metav1.WatchEvent) error {
	var read struct {
		Type   string         `json:"type"`
		Object jsontext.Value `json:"object"`
	}
	err := unmarshal(frame, &read)
	event.Type, event.Object.Raw = read.Type, read.Object
	return err
}
