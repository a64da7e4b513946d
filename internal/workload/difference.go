package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/checksum"
)

// OtherChanges names the fields, other than our annotations on the workload itself
// and the API server's own bookkeeping, in which two versions of it differ. Ours on
// the template count: a recording that changes one would roll the workload. An error tells
// that one is no JSON object.
func (k *Kind) OtherChanges(before, after []byte) ([]string, error) {
	var objects [2]map[string]any
	for i, body := range [][]byte{before, after} {
		if err := json.Unmarshal(body, &objects[i]); err != nil {
			return nil, fmt.Errorf("reading a %s for comparison: it is not a JSON object", k.Name)
		}
		if metadata, ok := objects[i]["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
			delete(metadata, "resourceVersion")
			delete(metadata, "generation")
			annotations, _ := metadata["annotations"].(map[string]any)
			maps.DeleteFunc(annotations, func(key string, _ any) bool { return checksum.IsOursOnWorkload(key) })
			if annotations != nil && len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
		// The status is not ours to compare: controllers write it all the time.
		delete(objects[i], "status")
	}
	return differences("", objects[0], objects[1]), nil
}

// differences lists the paths at which two values differ, in order, never the
// values themselves.
func differences(path string, was, is any) (paths []string) {
	if reflect.DeepEqual(was, is) {
		return nil
	}
	left, leftOK := was.(map[string]any)
	right, rightOK := is.(map[string]any)
	if !leftOK || !rightOK {
		return []string{strings.TrimPrefix(path, ".")}
	}
	either := map[string]any{}
	maps.Copy(either, left)
	maps.Copy(either, right)
	for _, key := range slices.Sorted(maps.Keys(either)) {
		paths = append(paths, differences(path+"."+key, left[key], right[key])...)
	}
	return paths
}
