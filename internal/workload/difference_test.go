package workload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

func TestOtherChanges_ARecordingMayChangeNothingButOurAnnotationsOfTheWorkload(t *testing.T) {
	const before = `{"metadata":{"name":"d"},"spec":{"template":{"metadata":{}}}}`
	for about, c := range map[string]struct {
		after string
		want  []string
	}{
		"all that is ours": {
			`{"metadata":{"name":"d","annotations":{"` + strings.Join(checksum.OursOnWorkload(), `":"{}","`) + `":"{}"}},"spec":{"template":{"metadata":{}}}}`, nil,
		},
		"what a later release writes into the template: that rolls": {
			`{"metadata":{"name":"d"},"spec":{"template":{"metadata":{"annotations":{"configstamp.dev/pins":"{}"}}}}}`, []string{"spec.template.metadata.annotations"},
		},
		"a setting": {
			`{"metadata":{"name":"d","annotations":{"configstamp.dev/pause":"true"}},"spec":{"template":{"metadata":{}}}}`, []string{"metadata.annotations"},
		},
	} {
		t.Run(about, func(t *testing.T) {
			others, err := workload.Builtin()[0].OtherChanges([]byte(before), []byte(c.after))
			if diff := cmp.Diff(c.want, others); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}
