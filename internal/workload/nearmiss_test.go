package workload_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// An object is told of what stands on it and on its pod template, of any kind.
func TestNearMisses(t *testing.T) {
	const metadata = `"labels": {"configstamp.dev/injcet": "enabled"}, "annotations": {"configstamp.dev/only": "configmap/a,configmap/typo"}`
	const template = `"metadata": {"labels": {"configstamp.dev/inject": "enabled"}, "annotations": {"configstamp.dev/mode": "observe"}},
		"spec": {"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}]}`
	of := map[string]string{
		"Deployment": fmt.Sprintf(`{"metadata": {%s}, "spec": {"template": {%s}}}`, metadata, template),
		"CronJob":    fmt.Sprintf(`{"metadata": {%s}, "spec": {"jobTemplate": {"spec": {"template": {%s}}}}}`, metadata, template),
		"Pod":        fmt.Sprintf(`{"metadata": {%s}, "spec": {"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}]}}`, metadata),
	}
	for name, text := range of {
		want := []checksum.Reason{checksum.NoSetting, checksum.NoTemplateSetting, checksum.NoTemplateSetting, checksum.Unnamed}
		if name == "Pod" { // its template is itself
			want = []checksum.Reason{checksum.NoSetting, checksum.Unnamed}
		}
		object, err := kindNamed(t, name).Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []checksum.Reason
		for _, finding := range object.NearMisses(nil) {
			got = append(got, finding.Reason)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
