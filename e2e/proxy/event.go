package proxy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is one event of a watch, as rules see it. What it says of the object is
// read only; Forward sends it as it came.
type Event struct {
	Type watch.EventType
	// Namespace, Name and ResourceVersion are of the object; a bookmark has the
	// last alone.
	Namespace, Name, ResourceVersion string

	frame []byte
}

// format is the encoding of a watch.
type format int

const (
	unknownFormat format = iota
	jsonFormat
	protobufFormat
)

func formatOf(header http.Header) format {
	switch contentType := header.Get("Content-Type"); {
	case strings.HasPrefix(contentType, runtime.ContentTypeProtobuf):
		return protobufFormat
	case strings.HasPrefix(contentType, runtime.ContentTypeJSON):
		return jsonFormat
	}
	return unknownFormat
}

// protobufPrefix stands before each object in protobuf.
const protobufPrefix = "k8s\x00"

// read takes a frame apart.
func (f format) read(frame []byte) (*Event, error) {
	event := &Event{frame: frame}
	var meta metav1.ObjectMeta
	switch f {
	case jsonFormat:
		var text struct {
			Type   string
			Object struct{ Metadata metav1.ObjectMeta }
		}
		if err := json.Unmarshal(frame, &text); err != nil {
			return nil, fmt.Errorf("reading an event: %w", err)
		}
		event.Type, meta = watch.EventType(text.Type), text.Object.Metadata
	case protobufFormat:
		var outer metav1.WatchEvent
		if err := outer.Unmarshal(frame[frameHead:]); err != nil {
			return nil, fmt.Errorf("reading an event: %w", err)
		}
		event.Type = watch.EventType(outer.Type)
		var inner runtime.Unknown
		if err := inner.Unmarshal(bytes.TrimPrefix(outer.Object.Raw, []byte(protobufPrefix))); err != nil {
			return nil, fmt.Errorf("reading the object of an event: %w", err)
		}
		if event.Type == watch.Error {
			return event, nil // a Status has other metadata
		}
		var object metav1.PartialObjectMetadata // every object begins with its metadata
		if err := object.Unmarshal(inner.Raw); err != nil {
			return nil, fmt.Errorf("reading the metadata of an event: %w", err)
		}
		meta = object.ObjectMeta
	case unknownFormat:
		return nil, errors.New("reading an event of an unknown encoding")
	}
	event.Namespace, event.Name, event.ResourceVersion = meta.Namespace, meta.Name, meta.ResourceVersion
	return event, nil
}

// frameHead is the length before each frame in protobuf.
const frameHead = 4

// expired is the frame of an event by which an API server tells that it does not
// have the wanted version any more.
func (f format) expired() ([]byte, error) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
		Message: "too old resource version: made by the test",
	}
	if f == jsonFormat {
		frame, err := json.Marshal(map[string]any{"type": watch.Error, "object": status})
		return append(frame, '\n'), err
	}
	raw, err := status.Marshal()
	if err != nil {
		return nil, err
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Status"}, Raw: raw}
	object, err := unknown.Marshal()
	if err != nil {
		return nil, err
	}
	event := metav1.WatchEvent{Type: string(watch.Error), Object: runtime.RawExtension{Raw: append([]byte(protobufPrefix), object...)}}
	frame, err := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...), err
}
