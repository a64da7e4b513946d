package workload_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/configstamp/configstamp/internal/workload"
)

// Whatever arrives, reading it does not panic, and reading it twice gives the
// same. go test ./internal/workload -run '^$' -fuzz FuzzDecode -fuzztime 1m
func FuzzDecode(f *testing.F) {
	const template = `{"metadata":{"annotations":{"secret.configstamp.dev/a":"x"}},"spec":{"volumes":[{"name":"v","secret":{"secretName":"a","items":[{"key":"k","path":"p"}]}}],"containers":[{"name":"c","volumeMounts":[{"name":"v","mountPath":"/m","subPath":"p"}]}]}}`
	for _, kind := range workload.Builtin() {
		f.Add(wrap(kind, `{"name":"web","annotations":{"configstamp.dev/baseline":"{}"}}`, template))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range workload.Builtin() {
			kind.TemplateWritten(raw)
			object, err := kind.Decode(raw)
			if err != nil {
				if object != nil {
					t.Fatal("an error, and an object")
				}
				continue
			}
			again, err := kind.Decode(raw)
			if err != nil {
				t.Fatalf("read the second time: %v", err)
			}
			if !object.Template.Same(&again.Template) {
				t.Fatalf("%s: a template differs from itself: %s", kind.Name, raw)
			}
			_, _ = object.Records()
			_, _, _ = object.FullName(), object.RolledByOwner(workload.Builtin()), object.Template.HasMetadata()
			if references, err := object.References(); err == nil {
				for _, r := range references {
					if r.Source.Name == "" || r.Use == "" || r.Where.String() == "" {
						t.Fatalf("%s: reference %+v", kind.Name, r)
					}
				}
			}
		}
	})
}

// Two templates are the same when, and only when, nothing but stamps differs,
// in either order; written in another form they stay so.
func FuzzSame(f *testing.F) {
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"x":[1,{"y":null}]}}`), []byte(`{"spec":{},"metadata":{"annotations":{"a":"b"}}}`))
	kind := workload.Builtin()[0]
	read := func(template []byte) (*workload.Template, bool) {
		if !json.Valid(template) {
			return nil, false
		}
		object, err := kind.Decode(wrap(kind, `{}`, string(template)))
		if err != nil {
			return nil, false
		}
		return &object.Template, true
	}
	f.Fuzz(func(t *testing.T, left, right []byte) {
		a, ok := read(left)
		if !ok {
			return
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, left, "", "\t"); err != nil {
			t.Fatal(err)
		}
		if other, ok := read(indented.Bytes()); !ok || !a.Same(other) {
			t.Fatalf("indented, it differs: %s", left)
		}
		b, ok := read(right)
		if !ok {
			return
		}
		if a.Same(b) != b.Same(a) {
			t.Fatalf("%s and %s: the order counts", left, right)
		}
		if bytes.Equal(left, right) && !a.Same(b) {
			t.Fatalf("%s differs from itself", left)
		}
	})
}
