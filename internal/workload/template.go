package workload

import (
	"bytes"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/configstamp/configstamp/checksum"
)

// Template is a pod template: its metadata read, its spec kept as it came
// until it is asked for. A template of a Go type (Kind.Of) has no Spec, and is the Same as nothing.
type Template struct {
	Metadata templateMetadata
	Spec     jsontext.Value

	read *corev1.PodSpec // nil until a spec that came as JSON is read
}

// sparingTemplate is a Template whose spec is left where it is.
type sparingTemplate struct {
	Metadata templateMetadata `json:"metadata"`
	Spec     span             `json:"spec"`
}

// templateMetadata reads annotations and keeps the rest for comparison.
type templateMetadata struct {
	Annotations map[string]string
	// rest is every other field, by name.
	rest map[string]jsontext.Value
	// written reports whether the object has a metadata field at all.
	written bool
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *templateMetadata) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	switch decoder.PeekKind() {
	case jsontext.KindNull:
		return decoder.SkipValue()
	case jsontext.KindBeginObject:
	default:
		return json.UnmarshalDecode(decoder, &m.rest) // an error that says what is wrong
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	m.written = true
	for decoder.PeekKind() != jsontext.KindEndObject {
		name, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		if err := m.field(name.String(), decoder); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}

// field reads the value of one field; of a name that comes twice the last counts.
func (m *templateMetadata) field(name string, decoder *jsontext.Decoder) error {
	if name == "annotations" {
		m.Annotations = nil
		return json.UnmarshalDecode(decoder, &m.Annotations)
	}
	value, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	if m.rest == nil {
		m.rest = map[string]jsontext.Value{}
	}
	m.rest[name] = value.Clone()
	return nil
}

// HasMetadata reports whether the template has a metadata object, which a
// patch of its annotations needs.
func (t *Template) HasMetadata() bool { return t.Metadata.written }

// Labels are those of the pods, none where they cannot be read.
func (t *Template) Labels() map[string]string {
	var labels map[string]string
	if unmarshal(t.Metadata.rest["labels"], &labels) != nil {
		return nil
	}
	return labels
}

// Same reports whether two templates are equal, our annotations aside. It compares
// the JSON, so fields of a newer API than this library's count too.
func (t *Template) Same(other *Template) bool {
	return sameJSON(t.Spec, other.Spec) &&
		sameForeign(t.Metadata.Annotations, other.Metadata.Annotations) &&
		sameRest(t.Metadata.rest, other.Metadata.rest)
}

func sameForeign(a, b map[string]string) bool {
	foreign := func(annotations map[string]string) (n int) {
		for key := range annotations {
			if !checksum.IsOursOnTemplate(key) {
				n++
			}
		}
		return n
	}
	if foreign(a) != foreign(b) {
		return false
	}
	for key, value := range a {
		if checksum.IsOursOnTemplate(key) {
			continue
		}
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

func sameRest(a, b map[string]jsontext.Value) bool {
	for key, value := range a {
		if !sameJSON(value, b[key]) {
			return false
		}
	}
	for key, value := range b {
		if _, ok := a[key]; !ok && !sameJSON(value, nil) {
			return false
		}
	}
	return true
}

// sameJSON compares two values. An absent one equals null and an empty object,
// as the API server reads them.
func sameJSON(a, b jsontext.Value) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if differInText(a, b) {
		return false
	}
	left, leftOK := anyJSON(a)
	right, rightOK := anyJSON(b)
	return leftOK && rightOK && reflect.DeepEqual(left, right)
}

// differInText reports that the first thing in which two values differ is a
// string, so that they are not the same whatever follows. It reads one of them
// up to there and keeps nothing, so it is quick; false says nothing.
func differInText(a, b jsontext.Value) bool {
	first := int64(0)
	for first < int64(min(len(a), len(b))) && a[first] == b[first] {
		first++
	}
	decoder := tokens(a)
	for {
		isText := decoder.PeekKind() == jsontext.KindString
		in, members := decoder.StackIndex(decoder.StackDepth())
		isName := in == jsontext.KindBeginObject && members%2 == 0
		end := decoder.InputOffset()
		token, err := decoder.ReadToken()
		if err != nil {
			return false
		}
		if decoder.InputOffset() <= first {
			continue
		}
		if !isText || isName {
			return false
		}
		start := end + int64(bytes.IndexByte(a[end:], '"'))
		if start >= first {
			return false
		}
		other, err := tokens(b[start:]).ReadToken()
		return err == nil && token.String() != other.String()
	}
}

// tokens reads a value part by part.
func tokens(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// canonical returns a value in one form, whether the API server has written it or client-go has
// written again what it had read. The second pass makes -0.0, which the first one makes -0, a 0.
func canonical(value jsontext.Value) jsontext.Value {
	for range 2 {
		read, ok := anyJSON(value)
		written, err := json.Marshal(read, json.Deterministic(true))
		if !ok || err != nil {
			break
		}
		value = written
	}
	return value
}

// anyJSON keeps whole numbers whole, which is why it reads with another library.
func anyJSON(raw jsontext.Value) (value any, ok bool) {
	if len(raw) == 0 {
		return nil, true
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, false
	}
	if object, isObject := value.(map[string]any); isObject && len(object) == 0 {
		return nil, true
	}
	return value, true
}
