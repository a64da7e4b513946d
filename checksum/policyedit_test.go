package checksum_test

import (
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// What also adds to what the template reads of a source loses no restart that pends.
func TestDecideAfterAlsoNamesASourceOfTheTemplate(t *testing.T) {
	plain := checksum.DefaultPolicy()
	also := plain.With(onWorkload("also", message.String()))
	for _, reference := range []checksum.Reference{env(message, "a"), mounted(message, "a")} {
		then := text("a", "1", "b", "1")
		held := checksum.Records{Stamps: map[string]string{checksum.StampKey(message): ring.Digest(namespace, selected(t, plain, reference), then)}}
		for about, c := range map[string]struct {
			content *checksum.Content
			want    reason.Reason
		}{
			"nothing changed":     {then, reason.Recorded},
			"another key changed": {text("a", "1", "b", "2"), reason.Recorded},
			"a restart pends":     {text("a", "2", "b", "1"), reason.Stamped},
		} {
			if got := rollingUnder(also, held, c.content, reference); got.Outcome != c.want || len(got.Findings) > 0 {
				t.Errorf("%s: %s, %v, want %s", about, got.Outcome, got.Findings, c.want)
			}
		}
	}
}
