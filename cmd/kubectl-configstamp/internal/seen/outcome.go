package seen

import (
	"github.com/configstamp/configstamp/internal/reason"
)

// Code says in one word what a rolling re-admission of a workload would come to: the
// webhook's own outcomes (package checksum has the table), under shorter names.
type Code = reason.Outcome

// The codes. Nothing but the webhook's own answer may become InStep: stamps alone prove
// nothing.
const (
	Unknown     = reason.NoOutcome
	InStep      = reason.OutcomeInStep
	WouldRoll   = reason.OutcomeWouldRoll
	WouldRecord = reason.OutcomeWouldRecord
	Observed    = reason.OutcomeObserved
	Held        = reason.OutcomeHeld
	Missing     = reason.OutcomeMissing
	Unreadable  = reason.OutcomeUnreadable
	Deferred    = reason.OutcomeDeferred
	Oversize    = reason.OutcomeOversize
	OptedOut    = reason.OutcomeOptedOut
	KeyLost     = reason.OutcomeKeyLost
	Declined    = reason.OutcomeDeclined
)

// Outcome is what the webhook has said of one workload.
type Outcome struct {
	Code Code `json:"code"`
	// Sentence is the webhook's own, for people. Of Unknown it says why nothing is
	// known.
	Sentence string `json:"sentence"`
	// Cause is why nothing is known, of Unknown alone.
	Cause Cause `json:"-"`
	// Beside are the webhook's other warnings.
	Beside []reason.Message `json:"-"`
	// Lasting tells of Unknown that to ask again is no use: it is a matter of rights, or
	// of another webhook.
	Lasting bool `json:"-"`
}

// Cause is why nothing is known of a workload.
type Cause int

// The causes.
const (
	OtherCause Cause = iota
	// Silence is an answer in which no webhook of ours has said anything.
	Silence
	// NoRight tells that the user may not patch the workload.
	NoRight
	// NoDryRun tells that another webhook refuses dry runs.
	NoDryRun
	// NotCalled tells that the API server could not call a webhook, and says so.
	NotCalled
)

// OutcomeIn returns the outcome in the warnings of a dry run, with the webhook's own sentence. It is
// Unknown, without a sentence, if there is none.
func OutcomeIn(warnings []string) Outcome {
	found := Outcome{Code: reason.OutcomeIn(warnings)}
	for _, warning := range warnings {
		message, ours := reason.Parse(warning)
		switch outcome := message.Outcome(); {
		case outcome != Unknown && outcome == found.Code && found.Sentence == "":
			found.Sentence = message.Sentence
		case ours && outcome == Unknown:
			found.Beside = append(found.Beside, message)
		}
	}
	return found
}

// UnknownBecause is an outcome of which nothing is known.
func UnknownBecause(why string) Outcome { return Outcome{Code: Unknown, Sentence: why} }

// By is the outcome with its cause.
func (o Outcome) By(cause Cause) Outcome {
	o.Cause = cause
	return o
}

// UnknownForGood is one that stays so.
func UnknownForGood(why string) Outcome { return Outcome{Code: Unknown, Sentence: why, Lasting: true} }
