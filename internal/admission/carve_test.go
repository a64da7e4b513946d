package admission

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What is carved is what a library finds there.
func carved(t *testing.T, text []byte) {
	t.Helper()
	type review struct {
		Request *struct {
			Object    jsontext.Value `json:"object"`
			OldObject jsontext.Value `json:"oldObject"`
		} `json:"request"`
	}
	unmarshal := func(text []byte, into any) error {
		return json.Unmarshal(text, into, jsontext.AllowInvalidUTF8(true))
	}
	valid := func(text []byte) bool {
		return jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true))
	}
	envelope, object, oldObject, _ := carve(text)
	if !valid(text) {
		if valid(envelope) && (object == nil || valid(object)) && (oldObject == nil || valid(oldObject)) {
			t.Fatalf("%s is not JSON, but all that is made of it is: %s, %s, %s", text, envelope, object, oldObject)
		}
		return
	}
	var want, got review
	if unmarshal(text, &want) != nil || want.Request == nil {
		return
	}
	if err := unmarshal(envelope, &got); err != nil || got.Request == nil {
		t.Fatalf("the envelope of %s: %s: %v", text, envelope, err)
	}
	for name, pair := range map[string][3][]byte{"object": {want.Request.Object, got.Request.Object, object}, "oldObject": {want.Request.OldObject, got.Request.OldObject, oldObject}} {
		found := pair[2]
		if found == nil {
			found = pair[1]
		} else if !bytes.Equal(pair[1], []byte("null")) {
			t.Errorf("%s of %s is carved and in the envelope: %s", name, text, envelope)
		}
		if !bytes.Equal(found, pair[0]) {
			t.Errorf("%s of %s is %s", name, text, found)
		}
	}
}

func TestCarve(t *testing.T) {
	for about, c := range map[string]struct{ text, envelope, object, oldObject string }{
		"both":                                 {`{"request":{"uid":"u","object":{"a":[1]},"oldObject":{"b":{}},"dryRun":true}}`, `{"request":{"uid":"u","object":null,"oldObject":null,"dryRun":true}}`, `{"a":[1]}`, `{"b":{}}`},
		"in any order, with spaces":            {"{ \"request\" : {\n\"oldObject\" : { \"b\" : 1 } , \"object\":{}\t} , \"kind\":\"x\"}", "{ \"request\" : {\n\"oldObject\" : null , \"object\":null\t} , \"kind\":\"x\"}", `{}`, `{ "b" : 1 }`},
		"none at creation":                     {`{"request":{"object":{"a":1},"oldObject":null}}`, `{"request":{"object":null,"oldObject":null}}`, `{"a":1}`, ``},
		"brackets and quotes in texts":         {`{"request":{"name":"\"object\":{","object":{"a":"}\\\"]","b\\":"{"}}}`, `{"request":{"name":"\"object\":{","object":null}}`, `{"a":"}\\\"]","b\\":"{"}`, ``},
		"an object of the same name elsewhere": {`{"object":{"x":1},"request":{"options":{"object":{"y":1}},"object":{"z":1}}}`, `{"object":{"x":1},"request":{"options":{"object":{"y":1}},"object":null}}`, `{"z":1}`, ``},
		"a name with escapes stays":            {`{"request":{"\u006fbject":{"a":1}}}`, `{"request":{"\u006fbject":{"a":1}}}`, ``, ``},
		"numbers, words, lists":                {`{"a":1e5,"b":[true,null],"c":null,"request":{"n":-1,"t":true,"object":{}}}`, `{"a":1e5,"b":[true,null],"c":null,"request":{"n":-1,"t":true,"object":null}}`, `{}`, ``},
		"no review":                            {`[]`, `[]`, ``, ``},
		"nothing":                              {``, ``, ``, ``},
		"broken off":                           {`{"request":{"object":{"a":"`, `{"request":{"object":{"a":"`, ``, ``},
	} {
		t.Run(about, func(t *testing.T) {
			envelope, object, oldObject, _ := carve([]byte(c.text))
			if string(envelope) != c.envelope || string(object) != c.object || string(oldObject) != c.oldObject {
				t.Errorf("%s, %s, %s", envelope, object, oldObject)
			}
			carved(t, []byte(c.text))
		})
	}
}

// No fewer values are counted than a review has, wherever they are, and none that only seems one.
func TestCarveCountsValues(t *testing.T) {
	for text, has := range map[string]int{
		`{"request":{"object":{"a":[` + strings.Repeat("{},", 999) + `{}]}}}`:        1000,
		`{"request":{"userInfo":{"groups":["` + strings.Repeat(`","`, 999) + `"]}}}`: 1000,
		`{` + strings.Repeat(`"a":1,`, 999) + `"a":1}`:                               1000,
		`{"request":{"oldObject":{` + strings.Repeat(`"a":null,`, 999) + `"a":1}}}`:  1000,
		`{"request":{"object":{"a":"` + strings.Repeat(`{[,\\\"`, 1000) + `"}}}`:     3,
	} {
		if _, _, _, values := carve([]byte(text)); values < has || values > 2*has+5 {
			t.Errorf("%.50s…: %d values are counted of %d", text, values, has)
		}
	}
}

// go test ./internal/admission -run '^$' -fuzz FuzzCarve -fuzztime 1m
func FuzzCarve(f *testing.F) {
	f.Add([]byte(`{"kind":"AdmissionReview","request":{"uid":"u","object":{"a":"\\\"}"},"oldObject":{"b":[{}]},"dryRun":false}}`))
	f.Add([]byte(`{"request":{"object":{"a":1},"object":{"b":2}, "oldObject" : null}}`))
	f.Fuzz(carved)
}
