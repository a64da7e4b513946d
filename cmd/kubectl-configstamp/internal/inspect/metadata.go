package inspect

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
)

// metadata is what is read of an object's metadata beside workload.Metadata.
type metadata struct {
	Namespace     string            `json:"namespace"`
	Name          string            `json:"name"`
	Version       string            `json:"resourceVersion"`
	Generation    int64             `json:"generation"`
	Annotations   map[string]string `json:"annotations"`
	Labels        map[string]string `json:"labels"`
	Created       time.Time         `json:"creationTimestamp"`
	Deleted       time.Time         `json:"deletionTimestamp"`
	Finalizers    []string          `json:"finalizers"`
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
	Operation   string         `json:"operation"`
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

// lastApplied holds what kubectl apply has applied, and Argo CD unless it applies on the server.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// applier is who has an annotation in what it applies, so that it may write it again; "" for
// nobody that is known.
func (m *metadata) applier(annotation string) string {
	var applied struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	_ = unmarshal([]byte(m.Annotations[lastApplied]), &applied) // what cannot be read applies nothing
	if _, found := applied.Metadata.Annotations[annotation]; found {
		return called(m.writer(lastApplied).Manager)
	}
	for i := range m.ManagedFields {
		if entry := &m.ManagedFields[i]; entry.applies() && owns(entry.Fields, annotationPath(annotation)) {
			return called(entry.Manager)
		}
	}
	return ""
}

// called names a field manager: kubectl has two names of its own for apply.
func called(manager string) string {
	switch manager {
	case "", "kubectl", "kubectl-client-side-apply":
		return "kubectl apply"
	}
	return manager
}

// applies reports whether an entry is of somebody who writes objects as they stand elsewhere:
// by an apply on the server, or, as Helm does, by updates of more than annotations. People
// make those, too, with kubectl.
func (m *managed) applies() bool {
	byHand := strings.HasPrefix(m.Manager, "kubectl-") && m.Manager != "kubectl-replace"
	nobody := m.Manager == "" || m.Manager == "before-first-apply" // as the API server calls what was there before
	return m.Subresource == "" && (m.Operation == "Apply" || !byHand && !nobody && ownsMore(m.Fields))
}

// ownsMore reports whether a set of fields (FieldsV1) has something beside annotations.
func ownsMore(fields jsontext.Value) bool {
	var all, metadata map[string]jsontext.Value
	if unmarshal(fields, &all) != nil || unmarshal(all["f:metadata"], &metadata) != nil {
		return false // it owns no annotation
	}
	delete(metadata, ".")
	delete(metadata, "f:annotations")
	return len(all) > 1 || len(metadata) > 0
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
