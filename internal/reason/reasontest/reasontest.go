// Package reasontest is for tests: it shows that programs compare codes, and no sentences.
package reasontest

import (
	"strconv"
	"strings"

	"github.com/configstamp/configstamp/internal/reason"
)

// Scramble replaces the sentence of a text that a program reads, and keeps all that programs may compare:
// code, source, key and fields. Any other text is replaced whole.
func Scramble(text string) string {
	const nonsense = "lorem ipsum; dolor"
	m, ok := reason.Parse(text)
	if !ok {
		return nonsense
	}
	kept := "configstamp: " + m.Code + ": "
	switch {
	case m.Key != "":
		kept += m.Source + " key " + strconv.Quote(m.Key) + " "
	case m.Source != "":
		kept += m.Source + " "
	case len(m.Fields) > 0:
		kept += strings.Join(m.Fields, ", ") + ": "
	}
	return kept + nonsense
}
