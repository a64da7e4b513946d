package follow

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apimachinery copies an object twice on its way from a frame to the kind's own Unmarshal: as the raw
// bytes of the event, and as those of the envelope. To collect that garbage takes more CPU than to
// decode, as memory is kept small. So event and envelope are read in place here, and whatever has
// another form than expected is left to apimachinery.

// events reads the events of a protobuf watch. What it returns is valid until the next read.
type events struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if fields, read := fieldsOf(data); ok && read && fields[2] != nil {
		if object, read := fieldsOf(fields[2]); read {
			event.Type, event.Object.Raw = string(fields[1]), object[1]
			return event, defaults, nil
		}
	}
	return e.Serializer.Decode(data, defaults, into)
}

// envelope is what every protobuf object begins with; a message runtime.Unknown follows.
const envelope = "k8s\x00"

// inPlace reads a protobuf object of one of kinds; false if data is anything else.
func inPlace(data []byte, kinds runtime.ObjectCreater) (runtime.Object, *schema.GroupVersionKind, bool) {
	data, is := bytes.CutPrefix(data, []byte(envelope))
	unknown, read := fieldsOf(data)
	if !is || !read || len(unknown[3]) > 0 { // the message is encoded once more
		return nil, nil, false
	}
	kind, read := fieldsOf(unknown[1])
	gvk := schema.FromAPIVersionAndKind(string(kind[1]), string(kind[2]))
	object, err := kinds.New(gvk)
	if err != nil || !read {
		return nil, nil, false
	}
	message, is := object.(interface{ Unmarshal(data []byte) error })
	return object, &gvk, is && message.Unmarshal(unknown[2]) == nil
}

// fieldsOf returns the first fields of a protobuf message, by number, as parts of it; false if one of
// them has no length or comes twice, or if it is no such message.
func fieldsOf(message []byte) (fields [5][]byte, ok bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fields, false
		}
		value := message[n:]
		size := protowire.ConsumeFieldValue(number, kind, value)
		if size < 0 {
			return fields, false
		}
		if int(number) < len(fields) {
			if kind != protowire.BytesType || fields[number] != nil {
				return fields, false
			}
			fields[number], _ = protowire.ConsumeBytes(value)
		}
		message = value[size:]
	}
	return fields, true
}
