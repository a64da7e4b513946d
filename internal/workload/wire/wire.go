// Package wire reads Kubernetes' protobuf where it lies: it gives out parts of the
// bytes that were received, and copies and decodes nothing.
//
// It does not know what the parts mean: the numbers of the fields stand in
// generated.proto of k8s.io/api and k8s.io/apimachinery, and never change.
package wire

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// errForm says nothing of what was received, which may be a Secret.
var errForm = errors.New("a protobuf message is cut off, or does not have the form of one")

// magic begins each object, as k8s.io/apimachinery/pkg/runtime/serializer/protobuf says.
const magic = "k8s\x00"

// Is reports whether data says of itself that it is an object in protobuf.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }

// Object is one as it was received (runtime.Unknown), part by part. Nothing but Message
// is long.
type Object struct {
	APIVersion, Kind string
	Message          []byte
}

// Open takes an object out of its envelope.
func Open(data []byte) (Object, error) {
	var o Object
	if !Is(data) {
		return o, errForm
	}
	err := Each(data[len(magic):], func(number int, value []byte) error {
		switch number {
		case 1: // typeMeta
			return Each(value, func(number int, value []byte) error {
				switch number {
				case 1:
					o.APIVersion = string(value)
				case 2:
					o.Kind = string(value)
				}
				return nil
			})
		case 2: // raw
			o.Message = value
		}
		return nil
	})
	return o, err
}

// Value is that of a field: a number (varint), or the bytes of a text or a message.
type Value struct {
	Bytes    []byte
	Number   uint64
	IsNumber bool
}

// Each calls found with each field of message that is a text, bytes or a message, in
// order. Fields may come more than once: of a text the last one counts, messages are
// continued, lists and maps grow. It ends with the first error.
func Each(message []byte, found func(number int, value []byte) error) error {
	return EachValue(message, func(number int, value Value) error {
		if value.IsNumber {
			return nil
		}
		return found(number, value.Bytes)
	})
}

// EachValue is Each for numbers too. It passes over those of fixed size.
func EachValue(message []byte, found func(number int, value Value) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errForm
		}
		message = message[n:]
		var value Value
		switch kind {
		case protowire.BytesType:
			value.Bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			value.IsNumber = true
			value.Number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errForm
		}
		message = message[n:]
		if kind != protowire.BytesType && kind != protowire.VarintType {
			continue
		}
		if err := found(int(number), value); err != nil {
			return err
		}
	}
	return nil
}

// Entry is one of a map.
func Entry(message []byte) (key, value []byte, err error) {
	err = Each(message, func(number int, text []byte) error {
		switch number {
		case 1:
			key = text
		case 2:
			value = text
		}
		return nil
	})
	return key, value, err
}
