package main

import (
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// What pause writes beside the setting is no setting.
func TestPauseNote_IsNoSetting(t *testing.T) {
	if settings := checksum.SettingsOf(map[string]string{checksum.PausedByAnnotation: "{}", pauseKey: "true"}); len(settings) != 1 {
		t.Errorf("the settings are %v", settings)
	}
}

// A note counts only beside what it says was written.
func TestNoteOf(t *testing.T) {
	n := checksum.PauseNote{Wrote: "true", At: "2026-11-22T03:00:00Z"}
	for name, test := range map[string]struct {
		annotations map[string]string
		own         bool
	}{
		"beside what it wrote":   {map[string]string{checksum.PausedByAnnotation: n.String(), pauseKey: "true"}, true},
		"beside another value":   {map[string]string{checksum.PausedByAnnotation: n.String(), pauseKey: "false"}, false},
		"the value was removed":  {map[string]string{checksum.PausedByAnnotation: n.String()}, false},
		"no note":                {map[string]string{pauseKey: "true"}, false},
		"not of the form of one": {map[string]string{checksum.PausedByAnnotation: "jane", pauseKey: "true"}, false},
	} {
		if own := noteOf(test.annotations) != nil; own != test.own {
			t.Errorf("%s: %v, want %v", name, own, test.own)
		}
	}
}

func TestOutlasts(t *testing.T) {
	now := atThree()
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

// Annotations are anybody's text: whatever they hold, nothing of it controls a terminal.
func TestPause_PrintsNoControlCharacters(t *testing.T) {
	server := ordered(t)
	const path = "/apis/apps/v1/namespaces/shop/deployments/goes-on"
	for _, value := range []string{"\x1b[31mtrue", "true\u009b2J", "tr\u202eue", "true\r"} {
		object := server.Get(t, path)
		object.SetAnnotations(map[string]string{pauseKey: value})
		server.Put(object)
		for _, command := range []string{"pause", "unpause"} {
			out, errOut, _ := run(t, server, command, "deployment/goes-on", "--dry-run=client")
			if !strings.Contains(out, pauseKey+"=") || strings.ContainsAny(out+errOut, "\x1b\u009b\u202e\r") {
				t.Errorf("%s over %q prints %q", command, value, out+errOut)
			}
		}
	}
}

func TestPrintable(t *testing.T) {
	const text = "äöü 日本 a\tb\nc"
	if got := printable(text); got != text {
		t.Errorf("%q becomes %q", text, got)
	}
	if got := printable("\x1b[2Ja\x00b\x7fc\x9b\u0085d"); got != "[2Jabc\ufffdd" {
		t.Errorf("it is %q", got)
	}
}
