package workload_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

func TestMuted(t *testing.T) {
	const (
		scaled = `{"f:spec":{"f:replicas":{}}}`
		paused = `{"f:spec":{"f:paused":{}}}`
		whole  = `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{}}}}`
		early  = `"2026-01-01T00:00:00Z"`
		late   = `"2026-06-01T00:00:00Z"`
	)
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	second := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	says := func(kind, status, reason, at string) string {
		return fmt.Sprintf(`{"conditions":[{"type":%q,"status":%q,"reason":%q,"lastUpdateTime":%s,"lastTransitionTime":%s}]}`, kind, status, reason, at, at)
	}
	for about, c := range map[string]struct {
		entries, status string
		want            workload.Muted
	}{
		"nothing is known":             {``, `{}`, workload.Muted{}},
		"it was scaled":                {managedBy(late, "scale", scaled), `{}`, workload.Muted{Since: second}},
		"it was scaled by an edit":     {managedBy(late, "", scaled), `{}`, workload.Muted{Since: second}},
		"it was paused":                {managedBy(late, "", paused), `{}`, workload.Muted{Since: second}},
		"the newest of two":            {managedBy(late, "", paused) + "," + managedBy(early, "scale", scaled), `{}`, workload.Muted{Since: second}},
		"by who writes the whole":      {managedBy(late, "", whole), `{}`, workload.Muted{}},
		"at an unknown time":           {managedBy("null", "scale", scaled), `{}`, workload.Muted{}},
		"its replicas are its tenants": {managedBy(late, "", `{"f:spec":{"f:tenants":{"f:replicas":{}}}}`), `{}`, workload.Muted{}},
		"it is available":              {``, says("Available", "True", "MinimumReplicasAvailable", early), workload.Muted{Available: first}},
		"it is not available":          {``, says("Available", "False", "MinimumReplicasUnavailable", early), workload.Muted{}},
		"it is rolled out":             {``, says("Progressing", "True", "NewReplicaSetAvailable", early), workload.Muted{RolledOut: first}},
		"it is not rolled out yet":     {``, says("Progressing", "True", "ReplicaSetUpdated", early), workload.Muted{}},
		"it has failed":                {``, says("Progressing", "False", "ProgressDeadlineExceeded", early), workload.Muted{}},
		"its status has another form":  {managedBy(late, "scale", scaled), `{"conditions":"none"}`, workload.Muted{Since: second}},
	} {
		t.Run(about, func(t *testing.T) {
			raw := fmt.Sprintf(`{"metadata":{"name":"web","managedFields":[%s]},"status":%s}`, c.entries, c.status)
			got := kindNamed(t, "Deployment").Muted([]byte(raw))
			if !got.Since.Equal(c.want.Since) || !got.RolledOut.Equal(c.want.RolledOut) || !got.Available.Equal(c.want.Available) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
