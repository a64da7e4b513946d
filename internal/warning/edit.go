package warning

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/rollout"
)

// errUnreadable quotes nothing of what cannot be read.
var errUnreadable = errors.New("an object is not a ConfigMap or Secret, or has too many keys")

// mostKeys bounds what an edit takes in memory beside its own bytes.
const mostKeys = 4096

// editOf is what a request does to a source; nil: nothing that could matter. scratch is
// for values, and is empty after each.
func editOf(request *admissionv1.AdmissionRequest, scratch *bytes.Buffer) (*impact.Edit, error) {
	kind := kindOf(request)
	if kind == "" || request.Operation != admissionv1.Update && request.Operation != admissionv1.Delete {
		return nil, nil
	}
	was, err := read(kind, request.OldObject.Raw, scratch)
	if err != nil {
		return nil, err
	}
	// The request itself has no name where a collection is deleted.
	at := rollout.SourceRef{Namespace: request.Namespace, Source: checksum.Source{Kind: kind, Name: was.Metadata.Name}}
	edit := &impact.Edit{At: at, Was: was.content(), Immutable: was.Immutable}
	switch {
	case was.Type == checksum.HelmReleaseType:
		return nil, nil
	case request.Operation == admissionv1.Update:
		is, err := read(kind, request.Object.Raw, scratch)
		if err != nil {
			return nil, err
		}
		edit.Is = is.content()
	case was.Metadata.DeletionTimestamp != "":
		return nil, nil // it was deleted before, and a finalizer keeps it
	}
	if edit.Was.Equal(edit.Is) {
		return nil, nil
	}
	return edit, nil
}

// kindOf is the kind of source that a request is about, "" for all else.
func kindOf(request *admissionv1.AdmissionRequest) checksum.Kind {
	switch of := request.Resource; {
	case request.SubResource != "" || of.Group != "":
	case of.Resource == "configmaps":
		return checksum.ConfigMap
	case of.Resource == "secrets":
		return checksum.Secret
	}
	return ""
}

// object is what is read of a ConfigMap or a Secret.
type object struct {
	Metadata struct {
		Name              string   `json:"name"`
		DeletionTimestamp string   `json:"deletionTimestamp"`
		Annotations       settings `json:"annotations"`
	} `json:"metadata"`
	Type       string `json:"type"`
	Immutable  bool   `json:"immutable"`
	Data       values `json:"data"`
	BinaryData values `json:"binaryData"`
}

func read(kind checksum.Kind, text []byte, scratch *bytes.Buffer) (*object, error) {
	o := &object{
		Data:       values{encoded: kind == checksum.Secret, scratch: scratch},
		BinaryData: values{encoded: true, binary: true, scratch: scratch},
	}
	if json.Unmarshal(text, o, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil || o.Metadata.Name == "" {
		return nil, errUnreadable
	}
	return o, nil
}

func (o *object) content() *checksum.Content {
	entries := append(o.Data.entries, o.BinaryData.entries...)
	slices.SortStableFunc(entries, func(a, b checksum.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return &checksum.Content{Entries: entries, Policy: checksum.SourcePolicyOf(o.Metadata.Annotations)}
}

// settings are annotations of which package checksum reads something: others may hold the
// content, as it was last applied.
type settings map[string]string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *settings) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	return eachMember(decoder, func(name string, value jsontext.Value) error {
		if !checksum.IsOfSource([]byte(name)) {
			return nil
		}
		if *s == nil {
			*s = settings{}
		}
		text, err := jsontext.AppendUnquote(nil, value)
		(*s)[name] = string(text)
		return err
	})
}

// values are checksums of the values of a map.
type values struct {
	entries []checksum.Entry
	encoded bool // in base64
	binary  bool // they are those of a ConfigMap's binaryData
	scratch *bytes.Buffer
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (v *values) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	return eachMember(decoder, func(name string, value jsontext.Value) error {
		if len(v.entries) == mostKeys || value.Kind() != '"' {
			return errUnreadable
		}
		sum, err := v.sum(value)
		v.entries = append(v.entries, checksum.Entry{Name: name, Sum: sum, Binary: v.binary})
		return err
	})
}

// sum hashes a value where it lies. One that is written otherwise than it is passes through
// scratch, which has room for it, and is wiped.
func (v *values) sum(value jsontext.Value) (sum [sha256.Size]byte, err error) {
	text := []byte(value[1 : len(value)-1])
	if v.encoded || bytes.IndexByte(text, '\\') >= 0 {
		v.scratch.Grow(len(value))
		plain := v.scratch.AvailableBuffer()
		if v.encoded {
			text, err = base64.StdEncoding.AppendDecode(plain, text)
		} else {
			text, err = jsontext.AppendUnquote(plain, value)
		}
		defer clear(text)
	}
	return sha256.Sum256(text), err
}

// eachMember reads an object, member by member; null has none.
func eachMember(decoder *jsontext.Decoder, visit func(name string, value jsontext.Value) error) error {
	switch opened, err := decoder.ReadToken(); {
	case err != nil:
		return err
	case opened.Kind() == 'n':
		return nil
	case opened.Kind() != '{':
		return errUnreadable
	}
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	_, err := decoder.ReadToken()
	return err
}
