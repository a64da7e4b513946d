package checksum_test

import (
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// paused is a note of kubectl configstamp pause, with what the pause says by now; "-" is gone.
func paused(wrote, is string) map[string]string {
	note := checksum.PauseNote{Wrote: wrote, At: "2026-11-22T03:00:00Z", By: "jane", Reason: "INC-42"}
	annotations := map[string]string{checksum.PausedByAnnotation: note.String()}
	if is != "-" {
		annotations[checksum.PauseAnnotation] = is
	}
	return annotations
}

func TestLostPause(t *testing.T) {
	const five, six = "2026-11-22T05:00:00Z", "2026-11-22T06:00:00Z"
	four := time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		annotations map[string]string
		now         time.Time
		lost        bool
	}{
		"it stands":                                     {paused("true", "true"), four, false},
		"false in its place":                            {paused("true", "false"), four, true},
		"it was ended by hand":                          {paused("true", "-"), four, false},
		"it was long ago":                               {paused("true", "false"), four.AddDate(0, 0, 8), false},
		"nobody knows when it was":                      {map[string]string{checksum.PausedByAnnotation: `{"wrote":"true","at":"then"}`, checksum.PauseAnnotation: "false"}, four, false},
		"false in place of one that still would hold":   {paused(five, "false"), four, true},
		"one that ended before it was taken away":       {paused(five, "-"), four.Add(time.Hour), false},
		"a longer one in its place":                     {paused(five, six), four, false},
		"a shorter one in its place, while it holds":    {paused(six, five), four, false},
		"a shorter one in its place, when it has ended": {paused(six, five), four.Add(time.Hour), true},
		"one that cannot be read holds, too":            {paused("true", "of course"), four, false},
		"an empty one cannot be read":                   {paused("true", ""), four, false},
		"nobody paused by order":                        {map[string]string{checksum.PauseAnnotation: "false"}, four, false},
		"a note of somebody else's":                     {map[string]string{checksum.PausedByAnnotation: "jane"}, four, false},
		"a note that makes no sense":                    {map[string]string{checksum.PausedByAnnotation: `{"wrote":"so"}`}, four, false},
	} {
		if lost := checksum.LostPauseIn(test.annotations).LostAt(test.now); lost != test.lost {
			t.Errorf("%s: lost: %t, want %t", name, lost, test.lost)
		}
	}
}

func TestLostPause_IsToldInWords(t *testing.T) {
	now := time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC)
	for is, want := range map[string]string{
		"false": `somebody took back the pause of 2026-11-22T03:00:00Z: configstamp.dev/pause is "false" now; it no longer holds anything, and kubectl configstamp doctor says more`,
	} {
		found := namespaceOf("enabled", paused("true", is)).LostPause.Findings(now)
		if len(found) != 1 || found[0].String() != want {
			t.Errorf("%q: %v, want %q", is, found, want)
		}
	}
	if found := namespaceOf("enabled", paused("true", "true")).LostPause.Findings(now); found != nil {
		t.Errorf("of a pause that stands: %v", found)
	}
}

// What somebody has written into a note is printed on one line, cut, and without what a
// terminal obeys.
func TestPauseNote_Words(t *testing.T) {
	note := checksum.PauseNote{At: "now\n", By: "\x1b[31mjane", Reason: strings.Repeat("long ", 100)}
	words := note.Words()
	if !strings.HasPrefix(words, " by [31mjane at now (long ") || strings.ContainsAny(words, "\n\x1b") || len(words) > 150 {
		t.Errorf("%q", words)
	}
}
