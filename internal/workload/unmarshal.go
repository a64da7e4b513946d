package workload

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// unmarshal reads JSON in one pass, by field names with their case, as the API
// server does. The library is the one that becomes encoding/json/v2; it is four
// times as fast here as encoding/json, whose every level reads the text again.
// What the API server has accepted is not refused for its form.
func unmarshal(raw []byte, into any) error {
	return json.Unmarshal(raw, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// span is where a value stands in a document, in bytes from its beginning.
type span struct{ start, end int64 }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *span) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	value, err := decoder.ReadValue()
	if err != nil {
		return fmt.Errorf("passing over a value: %w", err)
	}
	s.end = decoder.InputOffset()
	s.start = s.end - int64(len(value))
	return nil
}

// of is the value itself, a part of the document; nil when it is not there.
func (s span) of(document []byte) jsontext.Value {
	return jsontext.Value(document[s.start:s.end:s.end])
}
