package order

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// What pause writes beside the setting is no setting.
func TestNote_IsNoSetting(t *testing.T) {
	if settings := checksum.SettingsOf(map[string]string{checksum.PausedByAnnotation: "{}", pauseKey: "true"}); len(settings) != 1 {
		t.Errorf("the settings are %v", settings)
	}
}

// A note counts only beside what it says was written.
func TestNoteOf(t *testing.T) {
	n := checksum.PauseNote{Wrote: "true", At: "2026-11-22T03:00:00Z"}
	for name, test := range map[string]struct {
		annotations map[string]string
		mine        bool
	}{
		"beside what it wrote":  {map[string]string{checksum.PausedByAnnotation: n.String(), pauseKey: "true"}, true},
		"somebody wrote since":  {map[string]string{checksum.PausedByAnnotation: n.String(), pauseKey: "false"}, false},
		"somebody took it away": {map[string]string{checksum.PausedByAnnotation: n.String()}, false},
		"no note":               {map[string]string{pauseKey: "true"}, false},
		"not ours":              {map[string]string{checksum.PausedByAnnotation: "jane", pauseKey: "true"}, false},
	} {
		if mine := noteOf(test.annotations) != nil; mine != test.mine {
			t.Errorf("%s: %v, want %v", name, mine, test.mine)
		}
	}
}

func TestOutlasts(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	pauses := map[string]checksum.Pause{
		"none": {}, "for good": {On: true}, "over": {On: true, Until: now},
		"an hour": {On: true, Until: now.Add(time.Hour)}, "two hours": {On: true, Until: now.Add(2 * time.Hour)},
	}
	for _, test := range []struct {
		one, other string
		want       bool
	}{
		{"for good", "two hours", true}, {"for good", "for good", true}, {"two hours", "an hour", true}, {"an hour", "an hour", true},
		{"an hour", "two hours", false}, {"two hours", "for good", false}, {"over", "an hour", false}, {"none", "an hour", false}, {"none", "for good", false},
	} {
		if got := outlasts(pauses[test.one], pauses[test.other], now); got != test.want {
			t.Errorf("%s outlasts %s: %v", test.one, test.other, got)
		}
	}
}

func TestInTemplate(t *testing.T) {
	const want = `{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":{"k":"v"}}}}}}}`
	if got := string(inTemplate([]string{"spec", "jobTemplate", "spec", "template"}, "k", "v")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
