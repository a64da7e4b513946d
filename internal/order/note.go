package order

import (
	"encoding/json"
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// The annotations that orders are about. NoteKey is the plugin's own, outside of the
// settings; checksum.NearMisses does not take it for a misspelt one.
const (
	pauseKey  = "configstamp.dev/pause"
	resumeKey = "configstamp.dev/resume"
	adoptKey  = "configstamp.dev/adopt"
	NoteKey   = "kubectl.configstamp.dev/paused-by"
)

// note is what pause writes beside the setting.
type note struct {
	// Wrote is what pause has written; where something else stands there now, somebody
	// else has written that.
	Wrote string `json:"wrote"`
	// Before is what stood there before; nil: nothing.
	Before *string `json:"before,omitempty"`
	// At is the API server's time (RFC 3339), By the API server's name of the user.
	At     string `json:"at"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// noteOf reads the note beside a pause; nil where pause has not written what is there.
func noteOf(annotations map[string]string) *note {
	var n note
	text, found := annotations[NoteKey]
	value, set := annotations[pauseKey]
	if !found || !set || json.Unmarshal([]byte(text), &n) != nil || n.Wrote != value {
		return nil
	}
	return &n
}

func (n *note) String() string {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings always can be written
	}
	return string(text)
}

// words says who paused, and why: " by jane at 2026-11-22T03:00:00Z (INC-42)".
func (n *note) words() string {
	text := " at " + n.At
	if n.By != "" {
		text = " by " + n.By + text
	}
	if n.Reason != "" {
		text += " (" + n.Reason + ")"
	}
	return text
}

// pauseIn reads a value of configstamp.dev/pause; false: it cannot be read.
func pauseIn(value string) (checksum.Pause, bool) {
	policy := checksum.DefaultPolicy().With(checksum.Level{Origin: checksum.OfWorkload, Annotations: map[string]string{pauseKey: value}})
	return policy.Pause, len(policy.Faults) == 0
}

// outlasts reports whether one pause holds at least as long as another, from now on.
func outlasts(one, other checksum.Pause, now time.Time) bool {
	if !one.On || !one.Until.IsZero() && !now.Before(one.Until) {
		return false
	}
	return one.Until.IsZero() || other.On && !other.Until.IsZero() && !one.Until.Before(other.Until)
}
