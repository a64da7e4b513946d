package main

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// writerOf is the entry of managedFields whose manager wrote an annotation last, nil if none is known.
func writerOf(object metav1.Object, annotation string) (last *metav1.ManagedFieldsEntry) {
	path := fieldpath.MakePathOrDie("metadata", "annotations", annotation)
	entries := object.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if entry.Subresource == "" && fieldsOf(entry).Has(path) && (last == nil || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last
}

// dataWritten is when the data of a ConfigMap or Secret was last written, zero if that is not known.
func dataWritten(object metav1.Object) (last time.Time) {
	entries := object.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		owns := false
		for _, field := range []string{"data", "binaryData", "stringData"} {
			path := fieldpath.MakePathOrDie(field)
			_, within := fieldsOf(entry).Children.Get(path[0])
			owns = owns || within || fieldsOf(entry).Has(path)
		}
		if owns && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// fieldsOf are the fields of an entry. Those that cannot be read are none.
func fieldsOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// lastApplied holds what kubectl apply has applied, and Argo CD unless it applies on the server.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// applierOf is the manager that has an annotation in what it applies, "" if none is known: whatever an order writes there,
// this manager may write its own value again.
func applierOf(object *unstructured.Unstructured, annotation string) string {
	var applied struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal([]byte(object.GetAnnotations()[lastApplied]), &applied) // what cannot be read applies nothing
	if _, found := applied.Metadata.Annotations[annotation]; found {
		if writer := writerOf(object, lastApplied); writer != nil {
			return managerName(writer.Manager)
		}
		return managerName("")
	}
	path := fieldpath.MakePathOrDie("metadata", "annotations", annotation)
	entries := object.GetManagedFields()
	for i := range entries {
		if entry := &entries[i]; entry.Subresource == "" && fieldsOf(entry).Has(path) && applies(entry) {
			return managerName(entry.Manager)
		}
	}
	return ""
}

// managerName names a field manager for people: kubectl has two names of its own for apply.
func managerName(manager string) string {
	switch manager {
	case "", "kubectl", "kubectl-client-side-apply":
		return "kubectl apply"
	}
	return manager
}

// applies reports whether an entry is of a tool that writes whole objects as they stand elsewhere: by a server-side
// apply, or, as Helm does, by updates of more than annotations. People make such updates with kubectl.
func applies(entry *metav1.ManagedFieldsEntry) bool {
	if entry.Operation == metav1.ManagedFieldsOperationApply {
		return true
	}
	byHand := strings.HasPrefix(entry.Manager, "kubectl-") && entry.Manager != "kubectl-replace"
	unknown := entry.Manager == "" || entry.Manager == "before-first-apply" // as the API server calls what was there before
	more := false
	annotations := fieldpath.MakePathOrDie("metadata", "annotations")
	fieldsOf(entry).Iterate(func(path fieldpath.Path) {
		more = more || len(path) < len(annotations) || !path[:len(annotations)].Equals(annotations)
	})
	return !byHand && !unknown && more
}
