package checksum_test

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
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
			want    checksum.Reason
		}{
			"nothing changed":     {then, checksum.Recorded},
			"another key changed": {text("a", "1", "b", "2"), checksum.Recorded},
			"a restart pends":     {text("a", "2", "b", "1"), checksum.Stamped},
		} {
			if got := rollingUnder(also, held, c.content, reference); got.Outcome != c.want || len(got.Findings) > 0 {
				t.Errorf("%s: %s, %v, want %s", about, got.Outcome, got.Findings, c.want)
			}
		}
	}
}

// A policy edit restarts nothing whose content has not changed since its
// record, and loses no restart that pends.
func TestDecideAfterAPolicyEdit(t *testing.T) {
	startup := checksum.Policy{Uses: []checksum.Use{checksum.Startup}}
	references := []checksum.Reference{env(message, "a"), mounted(message, "b")}
	for about, c := range map[string]struct {
		was, is     checksum.Policy
		then, now   *checksum.Content
		rolling     checksum.Reason
		recordedAs  string // the keys of the new record
		recording   checksum.Reason
		stampsStand bool
	}{
		"nothing changed, fewer uses count": {checksum.DefaultPolicy(), startup, text("a", "1", "b", "1"), text("a", "1", "b", "1"), checksum.Recorded, "a", checksum.Recorded, true},
		"nothing changed, more uses count":  {startup, checksum.DefaultPolicy(), text("a", "1", "b", "1"), text("a", "1", "b", "2"), checksum.Recorded, "a b", checksum.Recorded, true},
		"a restart pends, fewer uses count": {checksum.DefaultPolicy(), startup, text("a", "1", "b", "1"), text("a", "1", "b", "2"), checksum.Stamped, "a", checksum.Kept, false},
		"a restart pends, more uses count":  {startup, checksum.DefaultPolicy(), text("a", "1", "b", "1"), text("a", "2", "b", "1"), checksum.Stamped, "a b", checksum.Kept, false},
	} {
		t.Run(about, func(t *testing.T) {
			held := checksum.Records{Stamps: map[string]string{
				checksum.StampKey(message): ring.Digest(namespace, selected(t, c.was, references...), c.then),
			}}
			a := checksum.Admission{
				Namespace: namespace, Held: held, Sent: held, Fresh: true, Asker: checksum.Roller,
				Selections: checksum.Selections(references, c.is), Content: func(checksum.Source) *checksum.Content { return c.now },
			}
			if got := strings.Join(a.Selections[0].Keys, " "); got != c.recordedAs {
				t.Fatalf("the case selects %s, want %s", got, c.recordedAs)
			}
			got := checksum.Decide(ring, a)
			value, _ := got.Records.Of(message)
			if got.Outcome != c.rolling || value != ring.Digest(namespace, a.Selections[0], c.now) {
				t.Errorf("rolling: %s, %v", got.Outcome, got.Records)
			}
			if stand := got.Records.Stamps[checksum.StampKey(message)] == held.Stamps[checksum.StampKey(message)]; stand != c.stampsStand {
				t.Errorf("rolling: the stamp stands: %v", stand)
			}
			a.Asker = checksum.Recorder
			if got := checksum.Decide(ring, a); got.Outcome != c.recording || len(got.Findings) > 0 {
				t.Errorf("recording: %s, %v", got.Outcome, got.Findings)
			}
		})
	}
}
