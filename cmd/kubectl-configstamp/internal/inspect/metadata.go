package inspect

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// metadata is what is read of an object's metadata beside workload.Metadata.
type metadata struct {
	Namespace     string            `json:"namespace"`
	Name          string            `json:"name"`
	Version       string            `json:"resourceVersion"`
	Annotations   map[string]string `json:"annotations"`
	Labels        map[string]string `json:"labels"`
	Created       time.Time         `json:"creationTimestamp"`
	Deleted       time.Time         `json:"deletionTimestamp"`
	ManagedFields []managed         `json:"managedFields"`
	Owners        []struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		UID        string `json:"uid"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
}

// managed is one entry of managedFields.
type managed struct {
	Manager     string         `json:"manager"`
	Time        time.Time      `json:"time"`
	Subresource string         `json:"subresource"`
	Fields      jsontext.Value `json:"fieldsV1"`
}

// metadataOf reads an object's metadata; what cannot be read is not there.
func metadataOf(raw []byte) metadata {
	var object struct {
		Metadata metadata `json:"metadata"`
	}
	_ = unmarshal(raw, &object)
	return object.Metadata
}

// writers lists the managedFields, newest first. What owns something at one of some paths
// (each of its entries a field's name) has written Content.
func (m *metadata) writers(paths ...[]string) []seen.Write {
	var writers []seen.Write
	for _, entry := range m.ManagedFields {
		if entry.Subresource != "" {
			continue
		}
		content := slices.ContainsFunc(paths, func(path []string) bool { return len(path) > 0 && owns(entry.Fields, path) })
		writers = append(writers, seen.Write{Manager: entry.Manager, At: entry.Time.UTC(), Content: content})
	}
	slices.SortStableFunc(writers, func(a, b seen.Write) int { return b.At.Compare(a.At) })
	return writers
}

// writer is who wrote an annotation last.
func (m *metadata) writer(annotation string) seen.Write {
	for _, write := range m.writers(annotationPath(annotation)) {
		if write.Content {
			return write
		}
	}
	return seen.Write{}
}

func annotationPath(annotation string) []string {
	return []string{"metadata", "annotations", annotation}
}

// owns reports whether a set of fields (FieldsV1) has something at a path.
func owns(fields jsontext.Value, path []string) bool {
	for _, name := range path {
		var inner map[string]jsontext.Value
		if err := unmarshal(fields, &inner); err != nil {
			return false
		}
		next, found := inner["f:"+name]
		if !found {
			return false
		}
		fields = next
	}
	return true
}
