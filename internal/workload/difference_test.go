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
		"several, in order": {`{"metadata":{"name":"e"},"kind":"D"}`, []string{"kind", "metadata.name", "spec"}},
	} {
		t.Run(about, func(t *testing.T) {
			others, err := workload.Builtin()[0].OtherChanges([]byte(before), []byte(c.after))
			if diff := cmp.Diff(c.want, others); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// Of what lies deep the path is told as far as that is of use.
func TestOtherChanges_Deep(t *testing.T) {
	deep := func(leaf string) []byte {
		return []byte(`{"spec":` + strings.Repeat(`{"x":`, 400) + leaf + strings.Repeat("}", 401))
	}
	others, err := workload.Builtin()[0].OtherChanges(deep("1"), deep("2"))
	if len(others) != 1 || !strings.HasPrefix(others[0], "spec.x.x.x.") || !strings.HasSuffix(others[0], "…") || len(others[0]) > 520 {
		t.Errorf("%q, %v", others, err)
	}
	if others, err := workload.Builtin()[0].OtherChanges(deep("1"), deep("1")); len(others) > 0 || err != nil {
		t.Errorf("between equal ones: %q, %v", others, err)
	}
}
