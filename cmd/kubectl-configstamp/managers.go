package main

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// writerOf returns the entry of managedFields whose manager wrote an annotation last, nil if none is known.
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

// fieldsOf returns the fields of an entry. Those that cannot be read are none.
func fieldsOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// appliedBy returns the tool that wrote an annotation and may write it again from a manifest, "" if a person wrote it, or
// if that is not known. Tools write whole objects, by a server-side apply or, as Helm does, by an update.
func appliedBy(object metav1.Object, annotation string) string {
	entry := writerOf(object, annotation)
	if entry == nil || slices.Contains([]string{"", "before-first-apply", orderManager}, entry.Manager) {
		return ""
	}
	name := managerName(entry.Manager)
	byHand := strings.HasPrefix(name, "kubectl-") && name != "kubectl-replace" // kubectl annotate, edit, patch
	whole := entry.Operation == metav1.ManagedFieldsOperationApply
	annotations := fieldpath.MakePathOrDie("metadata", "annotations")
	fieldsOf(entry).Iterate(func(path fieldpath.Path) {
		whole = whole || len(path) < len(annotations) || !path[:len(annotations)].Equals(annotations)
	})
	if byHand || !whole {
		return ""
	}
	return name
}

// managerName names a field manager for people: kubectl has two names of its own for apply.
func managerName(manager string) string {
	switch manager {
	case "", "kubectl", "kubectl-client-side-apply":
		return "kubectl apply"
	}
	return manager
}

// mayBeWrittenAgain warns of a tool that applies an annotation which an order overwrites.
func (o *task) mayBeWrittenAgain(t *target, annotation string) {
	if tool := appliedBy(t.object(), annotation); tool != "" {
		o.warn(fmt.Sprintf("%s writes %s on %s, and may write it again: change it where %[1]s reads it", tool, annotation, t.place()))
	}
}
