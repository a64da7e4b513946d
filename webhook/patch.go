package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// patchFor makes the operations (RFC 6902) that give an object the records
// that were decided, and change nothing else. There are none when the object
// carries them already. They are made by hand: a diff of whole documents would
// cost more than all the rest of an admission.
func patchFor(object *workload.Object, sent, decided checksum.Records) []jsonpatch.Operation {
	metadata := "/metadata"
	for i := len(object.Kind.Template) - 1; i >= 0; i-- {
		metadata = "/" + escape(object.Kind.Template[i]) + metadata
	}
	var patch []jsonpatch.Operation
	was, is := sent.OnTemplate(), decided.OnTemplate()
	switch {
	case maps.Equal(was, is):
	case !object.Template.HasMetadata() && len(object.Template.Spec) == 0: // a custom resource may have no template
	case !object.Template.HasMetadata():
		patch = append(patch, jsonpatch.NewOperation("add", metadata, map[string]any{"annotations": is}))
	case object.Template.Metadata.Annotations == nil:
		patch = append(patch, jsonpatch.NewOperation("add", metadata+"/annotations", is))
	default:
		patch = annotate(patch, metadata+"/annotations", was, is)
	}

	was, is = sent.OnWorkload(), decided.OnWorkload()
	for key := range object.Annotations {
		if _, counts := was[key]; !counts && checksum.IsOursOnWorkload(key) {
			was[key] = "" // a baseline that cannot be read is no baseline, and goes
		}
	}
	switch {
	case maps.Equal(was, is):
	case object.Annotations == nil:
		patch = append(patch, jsonpatch.NewOperation("add", "/metadata/annotations", is))
	default:
		patch = annotate(patch, "/metadata/annotations", was, is)
	}
	return patch
}

// annotate turns one set of annotations into another, in the order of keys.
// "add" replaces what is there.
func annotate(patch []jsonpatch.Operation, path string, was, is map[string]string) []jsonpatch.Operation {
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if value, ok := was[key]; !ok || value != is[key] {
			patch = append(patch, jsonpatch.NewOperation("add", path+"/"+escape(key), is[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[key]; !ok {
			patch = append(patch, jsonpatch.NewOperation("remove", path+"/"+escape(key), nil))
		}
	}
	return patch
}

// encode writes a JSON patch (RFC 6902) by the library that reads the reviews; an
// Operation's own MarshalJSON goes through encoding/json, twice for each value.
func encode(patch []jsonpatch.Operation) ([]byte, error) {
	type written struct {
		Operation string `json:"op"`
		Path      string `json:"path"`
		Value     any    `json:"value,omitzero"`
	}
	operations := make([]written, len(patch))
	for i, operation := range patch {
		operations[i] = written{operation.Operation, operation.Path, operation.Value}
	}
	text, err := json.Marshal(operations, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return text, nil
}

// escape writes a key as a segment of a JSON pointer (RFC 6901).
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
