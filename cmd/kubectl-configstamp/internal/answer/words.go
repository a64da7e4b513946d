package answer

import (
	"fmt"
	"strings"
	"time"
)

// Ago writes for how long something is past, as kubectl does: 45s, 12m, 3h, 2d.
func Ago(now, then time.Time) string {
	if then.IsZero() {
		return "unknown"
	}
	switch d := now.Sub(then); {
	case d < 0:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// newestOf is the newer of two times, either of which may be zero.
func newestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// firstSentence shortens a text for people. No answer depends on what it says.
func firstSentence(text string) string {
	first, _, _ := strings.Cut(text, ". ")
	return first
}
