package seen

// Code says in one word what a rolling re-admission of a workload would come to. The
// webhook gives it (AdmissionResponse.warnings); Unknown alone is ours.
type Code string

// The codes, from the least restrictive to the most. Nothing but the webhook's own
// answer may become InStep: stamps alone prove nothing.
const (
	Unknown     Code = "unknown"
	InStep      Code = "in-step"
	WouldRoll   Code = "would-roll"
	WouldRecord Code = "would-record"
	Observed    Code = "observed"
	Held        Code = "held"
	Missing     Code = "missing"
	Unreadable  Code = "unreadable"
	Deferred    Code = "deferred"
	Oversize    Code = "oversize"
	OptedOut    Code = "opted-out"
	KeyLost     Code = "key-lost"
	Declined    Code = "declined"
)

// Codes lists what the webhook can say, the most restrictive last.
func Codes() []Code {
	return []Code{InStep, WouldRoll, WouldRecord, Observed, Held, Missing, Unreadable, Deferred, Oversize, OptedOut, KeyLost, Declined}
}

// Outcome is what the webhook has said of one workload.
type Outcome struct {
	Code Code `json:"code"`
	// Sentence is the webhook's own, for people. Of Unknown it says why nothing is
	// known.
	Sentence string `json:"sentence"`
	// Moved tells that the workload was changed between being read and being asked for:
	// what was read is not what the webhook has answered for.
	Moved bool `json:"-"`
	// Lasting tells of Unknown that to ask again is no use: it is a matter of rights, or
	// of another webhook.
	Lasting bool `json:"-"`
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

// UnknownForGood is one that stays so.
func UnknownForGood(why string) Outcome { return Outcome{Code: Unknown, Sentence: why, Lasting: true} }
