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
// the template count: a recording that changes one would roll the workload. An error means
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
	var d difference
	d.compare(objects[0], objects[1])
	return d.paths, nil
}

// difference is what differs between two values: paths, in order, never the values themselves.
type difference struct {
	at    []byte // the path under way, "." before each name
	paths []string
}

// longestPath is how much of a path is returned, in bytes: values may lie deep in each other.
const longestPath = 512

func (d *difference) compare(was, is any) {
	left, leftOK := was.(map[string]any)
	right, rightOK := is.(map[string]any)
	if !leftOK || !rightOK {
		if !reflect.DeepEqual(was, is) {
			d.paths = append(d.paths, d.path())
		}
		return
	}
	either := map[string]any{}
	maps.Copy(either, left)
	maps.Copy(either, right)
	above := len(d.at)
	for _, key := range slices.Sorted(maps.Keys(either)) {
		d.at = append(append(d.at[:above], '.'), key...)
		d.compare(left[key], right[key])
	}
	d.at = d.at[:above]
}

func (d *difference) path() string {
	text := strings.TrimPrefix(string(d.at[:min(len(d.at), longestPath)]), ".")
	if len(d.at) > longestPath {
		text = strings.ToValidUTF8(text, "") + "…"
	}
	return text
}
