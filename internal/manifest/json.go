package manifest

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// splitJSON cuts a stream of JSON objects into documents, which together are the text.
// False: it is not one.
func splitJSON(text []byte) ([][]byte, bool) {
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return nil, false
	}
	decoder := readJSON(text)
	var documents [][]byte
	start := 0
	for {
		err := decoder.SkipValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false
		}
		end := int(decoder.InputOffset())
		documents = append(documents, text[start:end])
		start = end
	}
	last := len(documents) - 1
	documents[last] = text[start-len(documents[last]):]
	return documents, true
}

func readJSON(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// treeOfJSON reads where everything stands in a document of JSON.
func treeOfJSON(text []byte) (*node, error) {
	b := &jsonTree{text: text, decoder: readJSON(text)}
	return b.value()
}

type jsonTree struct {
	text    []byte
	decoder *jsontext.Decoder
}

// value reads the next value. Before it, from where the last token has ended, are white
// space, a comma or a colon.
func (b *jsonTree) value() (*node, error) {
	at := int(b.decoder.InputOffset())
	at += len(b.text[at:]) - len(bytes.TrimLeft(b.text[at:], " \t\r\n,:"))
	token, err := b.decoder.ReadToken()
	if err != nil {
		return nil, fault{at: at, says: "it is not JSON"}
	}
	n := &node{at: at, flow: true}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		n.form = mapping
		for b.decoder.PeekKind() != jsontext.KindEndObject {
			key, err := b.value()
			if err != nil {
				return nil, err
			}
			value, err := b.value()
			if err != nil {
				return nil, err
			}
			n.members = append(n.members, member{key, value})
		}
		_, err = b.decoder.ReadToken()
	case jsontext.KindBeginArray:
		n.form = list
		for b.decoder.PeekKind() != jsontext.KindEndArray {
			item, err := b.value()
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = b.decoder.ReadToken()
	case jsontext.KindNull:
		n.form, n.text = null, "null"
	case jsontext.KindString:
		n.quote, n.text = '"', token.String()
	default:
		n.text = token.String()
	}
	if err != nil {
		return nil, fault{at: at, says: "it is not JSON"}
	}
	return n, nil
}
