package judge

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Marker begins every content of a run, so that it can be looked for.
const Marker = "MARK-7f3c"

// Leaks tells where a text holds a marker: as it is, in hex, or in base64 at any
// of three alignments, without the characters that depend on what stands beside.
func Leaks(where string, text []byte, markers ...string) []Violation {
	var found []Violation
	for _, marker := range markers {
		forms := map[string]string{"as it is": marker, "in hex": hex.EncodeToString([]byte(marker)), "in HEX": strings.ToUpper(hex.EncodeToString([]byte(marker)))}
		for shift := range 3 {
			encoded := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte{'x'}, shift), marker...))
			forms[fmt.Sprintf("in base64, %d", shift)] = encoded[(shift*8+5)/6 : len(encoded)-4]
		}
		for form, looked := range forms {
			if i := bytes.Index(text, []byte(looked)); i >= 0 {
				found = append(found, Violation{Invariant: "I6", Object: where, Text: fmt.Sprintf("content is there, %s, after %q", form, text[max(0, i-100):i])})
			}
		}
	}
	return found
}
