package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
)

// MaxWarnings bounds an answer's warnings; the API server cuts them at
// 4 KiB in all.
const MaxWarnings = 12

// Allow allows a request. outcome stands in the audit log. There is no patch if nothing changes.
func Allow(request *admissionv1.AdmissionRequest, outcome string, operations []jsonpatch.Operation, warnings []string) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{
		UID:              request.UID,
		Allowed:          true,
		Warnings:         warnings,
		AuditAnnotations: map[string]string{"outcome": outcome},
	}
	if more := len(warnings) - MaxWarnings; more > 0 {
		response.Warnings = append(warnings[:MaxWarnings:MaxWarnings], fmt.Sprintf("configstamp: and %d more", more))
	}
	if len(operations) == 0 {
		return response
	}
	patch, err := encode(operations)
	if err != nil {
		return response // strings, and maps of strings, can always be written
	}
	patchType := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = patch, &patchType
	return response
}

// Annotate turns one set of annotations into another, in the order of keys.
// "add" replaces what is there.
func Annotate(patch []jsonpatch.Operation, path string, was, is map[string]string) []jsonpatch.Operation {
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if value, ok := was[key]; !ok || value != is[key] {
			patch = append(patch, jsonpatch.NewOperation("add", path+"/"+Escape(key), is[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, ok := is[key]; !ok {
			patch = append(patch, jsonpatch.NewOperation("remove", path+"/"+Escape(key), nil))
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
	text, err := jsonv2.Marshal(operations, jsonv2.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return text, nil
}

// Escape writes a key as a segment of a JSON pointer (RFC 6901).
func Escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
