package checksum

import (
	"encoding/json"
	"strings"
	"unicode"
)

// PausedByAnnotation stands beside a pause that kubectl configstamp pause has written. It is
// the plugin's own, outside of the settings.
const PausedByAnnotation = "kubectl.configstamp.dev/paused-by"

// PauseNote is what PausedByAnnotation holds.
type PauseNote struct {
	// Wrote is what was written; where something else stands there now, somebody else has
	// written that.
	Wrote string `json:"wrote"`
	// Before is what stood there before; nil: nothing.
	Before *string `json:"before,omitempty"`
	// At is the API server's time (RFC 3339), By the API server's name of the user.
	At     string `json:"at"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// PauseNoteIn reads the note among annotations; nil where there is none.
func PauseNoteIn(annotations map[string]string) *PauseNote {
	var note PauseNote
	text, found := annotations[PausedByAnnotation]
	if !found || json.Unmarshal([]byte(text), &note) != nil {
		return nil
	}
	return &note
}

// Stands reports whether what was written is still there.
func (n *PauseNote) Stands(annotations map[string]string) bool {
	value, set := annotations[PauseAnnotation]
	return set && value == n.Wrote
}

// String is the annotation.
func (n *PauseNote) String() string {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings always can be written
	}
	return string(text)
}

// Words say who paused, when and why: " by jane at 2026-11-22T03:00:00Z (INC-42)".
func (n *PauseNote) Words() string {
	text := " at " + printed(n.At)
	if n.By != "" {
		text = " by " + printed(n.By) + text
	}
	if n.Reason != "" {
		text += " (" + printed(n.Reason) + ")"
	}
	return text
}

// printed is somebody's text on one line, not too long.
func printed(text string) string {
	return shortened(strings.Map(func(letter rune) rune {
		if !unicode.IsPrint(letter) {
			return -1
		}
		return letter
	}, text))
}
