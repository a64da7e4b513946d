package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bare is an object without what is ours, the API server's own or a workload
// controller's to write. What is left is the user's alone.
func bare(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy().Object
	delete(copied, "status")
	metadata, _, _ := unstructured.NestedMap(copied, "metadata")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "selfLink"} {
		delete(metadata, field)
	}
	withoutOurs(metadata)
	copied["metadata"] = metadata
	if isWorkload(object.GetKind()) {
		path := append(templatePath(object), "metadata")
		template, _, _ := unstructured.NestedMap(copied, path...)
		delete(template, "creationTimestamp")
		withoutOurs(template)
		if len(template) == 0 {
			unstructured.RemoveNestedField(copied, path...)
		} else {
			_ = unstructured.SetNestedMap(copied, template, path...)
		}
	}
	return copied
}

func withoutOurs(metadata map[string]any) {
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return isOurs(key) || key == "deployment.kubernetes.io/revision" || key == "deprecated.daemonset.template.generation"
	})
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

// isOurs reports whether an annotation of a workload or its template is written by
// configstamp. The judge knows that by itself.
func isOurs(key string) bool {
	switch key {
	case "configstamp.dev/baseline", declinedAnnotation, pinsAnnotation:
		return true
	}
	return strings.HasPrefix(key, "configmap.configstamp.dev/") || strings.HasPrefix(key, "secret.configstamp.dev/")
}

// template is the part of a bare object whose change starts new pods.
func template(object *unstructured.Unstructured) any {
	found, _, _ := unstructured.NestedFieldNoCopy(bare(object), templatePath(object)...)
	return found
}

// ours are our annotations on an object.
func ours(object *unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	of := func(prefix string, path ...string) {
		annotations, _, _ := unstructured.NestedStringMap(object.Object, append(path, "metadata", "annotations")...)
		for key, value := range annotations {
			if isOurs(key) {
				found[prefix+key] = value
			}
		}
	}
	of("metadata ")
	of("template ", templatePath(object)...)
	return found
}

// unwanted lists what is stored of a user's write and was not wanted.
func (w Write) unwanted(before, after *unstructured.Unstructured) []string {
	switch {
	case w.Defaulted && w.Sent != nil:
		found := w.lost("", bare(w.Sent), bare(after))
		if !w.Merged { // nothing adds defaults to metadata
			found = append(found, differences("metadata", metadata(w.Sent), metadata(after))...)
			path := append(templatePath(after), "metadata")
			found = append(found, differences("template metadata", metadata(w.Sent, path...), metadata(after, path...))...)
		}
		return found
	case w.Sent != nil:
		return differences("", bare(w.Sent), bare(after))
	case w.Patch != nil && before != nil:
		text, err := json.Marshal(before.Object)
		if err != nil {
			return []string{err.Error()}
		}
		if text, err = jsonpatch.MergePatch(text, w.Patch); err != nil {
			return []string{err.Error()}
		}
		var wanted unstructured.Unstructured
		if err := json.Unmarshal(text, &wanted.Object); err != nil {
			return []string{err.Error()}
		}
		return differences("", bare(&wanted), bare(after))
	}
	return nil
}

// metadata is that of a bare object, or of a part of it.
func metadata(object *unstructured.Unstructured, path ...string) map[string]any {
	if len(path) == 0 {
		path = []string{"metadata"}
	}
	found, _, _ := unstructured.NestedMap(bare(object), path...)
	delete(found, "namespace")
	return found
}

// differences lists the paths at which two objects differ.
func differences(path string, was, is any) []string {
	if equal(was, is) {
		return nil
	}
	left, leftOK := was.(map[string]any)
	right, rightOK := is.(map[string]any)
	if !leftOK || !rightOK {
		return []string{fmt.Sprintf("%s: %v, then %v", strings.TrimPrefix(path, "."), was, is)}
	}
	keys := slices.Collect(maps.Keys(left))
	for key := range right {
		if _, ok := left[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var found []string
	for _, key := range keys {
		found = append(found, differences(path+"."+key, left[key], right[key])...)
	}
	return found
}

// lost lists what was sent and is not stored; an API server adds defaults, and
// an apply keeps the items of lists that other managers own.
func (w Write) lost(path string, sent, stored any) []string {
	switch s := sent.(type) {
	case map[string]any:
		now, _ := stored.(map[string]any)
		var found []string
		for _, key := range sortedKeys(s) {
			found = append(found, w.lost(path+"."+key, s[key], now[key])...)
		}
		return found
	case []any:
		now, _ := stored.([]any)
		if w.Merged {
			return w.lostItems(path, s, now)
		}
		if len(now) != len(s) {
			return []string{fmt.Sprintf("%s: %d items, then %d", path, len(s), len(now))}
		}
		var found []string
		for i := range s {
			found = append(found, w.lost(fmt.Sprintf("%s[%d]", path, i), s[i], now[i])...)
		}
		return found
	}
	if !equal(sent, stored) {
		return []string{fmt.Sprintf("%s: %v, then %v", strings.TrimPrefix(path, "."), sent, stored)}
	}
	return nil
}

// lostItems lists the items that no stored one holds.
func (w Write) lostItems(path string, sent, stored []any) []string {
	var found []string
	for i, item := range sent {
		held := slices.ContainsFunc(stored, func(other any) bool { return len(w.lost("", item, other)) == 0 })
		if !held {
			found = append(found, fmt.Sprintf("%s[%d] is not among %d items", path, i, len(stored)))
		}
	}
	return found
}

// equal compares as JSON does, which has one kind of number.
func equal(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}
