package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/configstamp/configstamp/internal/workload/wire"
)

// Reader reads objects of one kind. A Kind is one, of JSON.
type Reader interface {
	Decode(object []byte) (*Object, error)
	DecodeMetadata(object []byte) (*Object, error)
	Status(object []byte) (Status, error)
}

// messages reads protobuf messages of a kind as its Kind reads JSON: into the same Go
// types, but that the pod spec is read at once.
type messages struct {
	kind                 *Kind
	shape                reflect.Type
	object, head, report fields
}

// head is what is read of an object whose template cannot be read.
type head struct {
	Metadata Metadata `json:"metadata"`
}

// writtenTemplate is a pod template as it is read from protobuf.
type writtenTemplate struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec podSpec `json:"spec"`
}

// Protobuf reads messages of the kind: what k8s.io/apimachinery's envelope holds, or the
// item of a list. It is nil for a kind that is read as JSON alone. What it reads
// does what the JSON would do, except for Template.Same.
func (k *Kind) Protobuf() Reader {
	if k.api == nil {
		return nil
	}
	shape := shapeOf(k.Template, reflect.TypeFor[writtenTemplate]())
	return &messages{
		kind: k, shape: shape,
		object: fieldsOf(shape, k.api), head: fieldsOf(reflect.TypeFor[head](), k.api), report: fieldsOf(reflect.TypeFor[report](), k.api),
	}
}

// Decode implements Reader.
func (m *messages) Decode(message []byte) (*Object, error) {
	value := reflect.New(m.shape).Elem()
	if err := m.object.read(value, message); err != nil {
		return nil, fmt.Errorf("reading a %s: %w", m.kind.Name, plain(err))
	}
	template := at[writtenTemplate](m.kind.templateIn(value))
	return &Object{
		Kind:     m.kind,
		Metadata: *at[Metadata](value.Field(0)),
		Template: Template{Metadata: templateMetadata{Annotations: template.Metadata.Annotations, written: true}, read: template.Spec.spec()},
	}, nil
}

// DecodeMetadata implements Reader.
func (m *messages) DecodeMetadata(message []byte) (*Object, error) {
	var read head
	if err := m.head.read(reflect.ValueOf(&read).Elem(), message); err != nil {
		return nil, fmt.Errorf("reading the metadata of a %s: %w", m.kind.Name, plain(err))
	}
	return &Object{Kind: m.kind, Metadata: read.Metadata}, nil
}

// Status implements Reader.
func (m *messages) Status(message []byte) (status Status, err error) {
	var o report
	if err = plain(m.report.read(reflect.ValueOf(&o).Elem(), message)); err == nil {
		status, err = m.kind.status(&o)
	}
	if err != nil {
		return Status{}, fmt.Errorf("reading how far a %s is: %w", m.kind.Name, err)
	}
	return status, nil
}

// fields reads those fields of a message that a Go type of ours has, by their numbers.
type fields map[int]reading

// reading puts a value into a field of ours, or adds it there.
type reading func(into reflect.Value, value wire.Value) error

var errType = errors.New("a field has the wrong type")

func (f fields) read(into reflect.Value, message []byte) error {
	return wire.EachValue(message, func(number int, value wire.Value) error {
		if read := f[number]; read != nil {
			return read(into, value)
		}
		return nil
	})
}

// fieldsOf finds out by the tags of a type of k8s.io/api which number has the field that
// a type of ours reads from JSON.
func fieldsOf(ours, theirs reflect.Type) fields {
	all := fields{}
	for i := range theirs.NumField() {
		field := theirs.Field(i)
		written := strings.Split(field.Tag.Get("protobuf"), ",") // bytes,1,opt,name=metadata
		if len(written) < 2 {
			continue
		}
		number, err := strconv.Atoi(written[1])
		if err != nil {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // in JSON its fields stand beside it
			all[number] = message(fieldsOf(ours, field.Type))
			continue
		}
		for i := range ours.NumField() {
			if ours.Field(i).Tag.Get("json") == name {
				read := readingOf(ours.Field(i).Type, field.Type)
				all[number] = func(into reflect.Value, value wire.Value) error { return read(into.Field(i), value) }
			}
		}
	}
	return all
}

// readingOf is how a value of a type of k8s.io/api gets into one of ours.
func readingOf(ours, theirs reflect.Type) reading {
	if theirs.Kind() == reflect.Pointer {
		theirs = theirs.Elem()
	}
	if ours.Kind() == reflect.Pointer {
		read := readingOf(ours.Elem(), theirs)
		return func(into reflect.Value, value wire.Value) error {
			if into.IsNil() {
				into.Set(reflect.New(ours.Elem()))
			}
			return read(into.Elem(), value)
		}
	}
	_, generated := reflect.New(ours).Interface().(unmarshaler)
	switch kind := ours.Kind(); {
	case ours == theirs && generated:
		return whole
	case kind != theirs.Kind():
		return byJSON(theirs)
	case kind == reflect.String:
		return text
	case kind == reflect.Bool, kind == reflect.Int32, kind == reflect.Int64:
		return number
	case kind == reflect.Map:
		return entry
	case kind == reflect.Slice:
		return item(ours, readingOf(ours.Elem(), theirs.Elem()))
	case kind == reflect.Struct:
		return message(fieldsOf(ours, theirs))
	}
	panic("reading protobuf: no field of ours may be a " + ours.String())
}

type unmarshaler interface{ Unmarshal(message []byte) error }

// whole reads a value of their type.
func whole(into reflect.Value, value wire.Value) error {
	if value.IsNumber {
		return errType
	}
	return into.Addr().Interface().(unmarshaler).Unmarshal(value.Bytes) //nolint:forcetypeassert // readingOf saw it
}

func message(f fields) reading {
	return func(into reflect.Value, value wire.Value) error {
		if value.IsNumber {
			return errType
		}
		return f.read(into, value.Bytes)
	}
}

func text(into reflect.Value, value wire.Value) error {
	if value.IsNumber {
		return errType
	}
	into.SetString(string(value.Bytes))
	return nil
}

func number(into reflect.Value, value wire.Value) error {
	switch {
	case !value.IsNumber:
		return errType
	case into.Kind() == reflect.Bool:
		into.SetBool(value.Number != 0)
	default:
		into.SetInt(int64(value.Number)) //nolint:gosec // negative ones are written so
	}
	return nil
}

// entry adds one of a map of texts.
func entry(into reflect.Value, value wire.Value) error {
	if value.IsNumber {
		return errType
	}
	key, text, err := wire.Entry(value.Bytes)
	if err != nil {
		return err
	}
	texts := into.Addr().Interface().(*map[string]string) //nolint:forcetypeassert // we have no other map
	if *texts == nil {
		*texts = map[string]string{}
	}
	(*texts)[string(key)] = string(text)
	return nil
}

// item adds one of a list of messages, if the list keeps it.
func item(list reflect.Type, read reading) reading {
	picky, picks := reflect.Zero(list).Interface().(interface{ keeps(message []byte) bool })
	return func(into reflect.Value, value wire.Value) error {
		if picks && !picky.keeps(value.Bytes) {
			return nil
		}
		last := into.Len()
		into.Grow(1)
		into.SetLen(last + 1)
		return read(into.Index(last), value)
	}
}

// byJSON has ours read the JSON of a value of another type.
func byJSON(theirs reflect.Type) reading {
	read := readingOf(theirs, theirs)
	return func(into reflect.Value, value wire.Value) error {
		their := reflect.New(theirs)
		if err := read(their.Elem(), value); err != nil {
			return err
		}
		text, err := json.Marshal(their.Interface())
		if err != nil {
			return err
		}
		return unmarshal(text, into.Addr().Interface())
	}
}
