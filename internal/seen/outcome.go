package seen

import (
	"strings"

	"github.com/configstamp/configstamp/checksum"
)

// Code says in one word what a rolling re-admission of a workload would come to: the
// webhook's own outcomes (package checksum has the table), under shorter names.
type Code = checksum.Outcome

// The codes. Nothing but the webhook's own answer may become InStep: stamps alone prove
// nothing.
const (
	Unknown     = checksum.NoOutcome
	InStep      = checksum.OutcomeInStep
	WouldRoll   = checksum.OutcomeWouldRoll
	WouldRecord = checksum.OutcomeWouldRecord
	Observed    = checksum.OutcomeObserved
	Held        = checksum.OutcomeHeld
	Missing     = checksum.OutcomeMissing
	Unreadable  = checksum.OutcomeUnreadable
	Deferred    = checksum.OutcomeDeferred
	Oversize    = checksum.OutcomeOversize
	OptedOut    = checksum.OutcomeOptedOut
	KeyLost     = checksum.OutcomeKeyLost
	Declined    = checksum.OutcomeDeclined
)

// Outcome is what the webhook has said of one workload.
type Outcome struct {
	Code Code `json:"code"`
	// Sentence is the webhook's own, for people. Of Unknown it says why nothing is
	// known.
	Sentence string `json:"sentence"`
}

// OutcomeIn is the outcome in the warnings of a dry run, in the webhook's own words. It is
// Unknown, without words, when they hold none.
func OutcomeIn(warnings []string) Outcome {
	found := Outcome{Code: checksum.OutcomeIn(warnings)}
	for _, warning := range warnings {
		if code, ok := checksum.ParseOutcome(warning); ok && code == found.Code {
			found.Sentence = strings.SplitN(warning, ": ", 3)[2] // who, what, and the sentence
			break
		}
	}
	return found
}

// Stale reports whether the webhook has said that some source has other content than the
// workload's pods started with. It is false of what is not known.
func (o Outcome) Stale() bool {
	switch o.Code {
	case WouldRoll, Observed, Held:
		return true
	case Unknown, InStep, WouldRecord, Missing, Unreadable, Deferred, Oversize, OptedOut, KeyLost, Declined:
	}
	return false
}

// UnknownBecause is an outcome of which nothing is known.
func UnknownBecause(why string) Outcome { return Outcome{Code: Unknown, Sentence: why} }
