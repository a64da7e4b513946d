package report

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LastEdit returns when the data of a ConfigMap or Secret was last written, and the field manager that wrote it, by its
// managedFields; zero if that is not known.
func LastEdit(entries []metav1.ManagedFieldsEntry) (at time.Time, manager string) {
	for _, entry := range entries {
		var top map[string]json.RawMessage
		if entry.Time == nil || entry.Time.Time.Before(at) || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &top) != nil {
			continue
		}
		if top["f:data"] != nil || top["f:binaryData"] != nil || top["f:stringData"] != nil {
			at, manager = entry.Time.Time, entry.Manager
		}
	}
	return at, manager
}
