package checksum_test

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// What somebody has written into a note is printed on one line, cut, and without what a
// terminal obeys.
func TestPauseNote_Words(t *testing.T) {
	note := checksum.PauseNote{At: "now\n", By: "\x1b[31mjane", Reason: strings.Repeat("long ", 100)}
	words := note.Words()
	if !strings.HasPrefix(words, " by [31mjane at now (long ") || strings.ContainsAny(words, "\n\x1b") || len(words) > 150 {
		t.Errorf("%q", words)
	}
}
