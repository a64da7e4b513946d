package order

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
)

// The annotations that orders are about, beside checksum.PausedByAnnotation.
const (
	pauseKey  = checksum.PauseAnnotation
	resumeKey = checksum.ResumeAnnotation
)

// noteOf reads the note beside a pause; nil where pause has not written what is there.
func noteOf(annotations map[string]string) *checksum.PauseNote {
	if note := checksum.PauseNoteIn(annotations); note != nil && note.Stands(annotations) {
		return note
	}
	return nil
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
