package reason

import (
	"cmp"
	"slices"
)

// Outcome is the answer to the dry run of a rolling re-admission. Users, scripts and the kubectl plugin
// read it. Codes and order are stable.
type Outcome int

// The outcomes, the least restrictive first.
const (
	// NoOutcome is no answer: no webhook was asked, or none answered. Nothing is known.
	NoOutcome Outcome = iota
	OutcomeInStep
	OutcomeWouldRoll
	OutcomeWouldRecord
	OutcomeObserved
	// OutcomeHeld is the outcome of a hold without a code of its own, such as OnHold alone.
	OutcomeHeld
	OutcomeMissing
	OutcomeUnreadable
	OutcomeDeferred
	OutcomeOversize
	OutcomeOptedOut
	OutcomeKeyLost
	OutcomeDeclined

	outcomeCount
)

// OutcomeRow is one row of the table of outcomes.
type OutcomeRow struct {
	// Code is stable. Sentence is for people.
	Code, Sentence string
}

// outcomes is never changed.
var outcomes = [outcomeCount]OutcomeRow{ //nolint:gochecknoglobals // never changed
	OutcomeInStep:      {"in-step", "every recorded checksum is up to date; nothing would change"},
	OutcomeWouldRoll:   {"would-roll", "the workload would be stamped and roll out; an order by this field manager does not wait for pause, window or min-interval"},
	OutcomeWouldRecord: {"would-record", "the present content would be recorded; nothing would restart"},
	OutcomeObserved:    {"observed", "content has changed, but mode is observe; nothing would restart"},
	OutcomeHeld:        {"held", "content has changed, but the workload is held; nothing would restart"},
	OutcomeMissing:     {"missing", "a required source or key does not exist; nothing restarts until it does"},
	OutcomeUnreadable:  {"unreadable", "a setting or the pod template cannot be read; nothing restarts until it is fixed"},
	OutcomeDeferred:    {"deferred", "the present content of the sources could not be read in time; ask again"},
	OutcomeOversize:    {"oversize", "the annotations would be too large with the checksums; nothing would change"},
	OutcomeOptedOut:    {"opted-out", "the workload is not opted in; configstamp leaves it alone"},
	OutcomeKeyLost:     {"key-lost", "a recorded checksum cannot be compared, because its key is lost or belongs to another installation; nothing would restart"},
	OutcomeDeclined:    {"declined", "configstamp does not stamp objects of this kind, or an error occurred; nothing would change"},
}

// outcomeBeside marks a reason that has a warning of its own beside the outcome, and decides nothing.
const outcomeBeside = NoOutcome - 1

// outcomeOf is the outcome of each reason that an admission can have, NoOutcome for the others.
var outcomeOf = [reasonCount]Outcome{ //nolint:gochecknoglobals // never changed
	MissingSource: OutcomeMissing, MissingKey: OutcomeMissing,
	UnreadableSetting: OutcomeUnreadable, TemplateUnreadable: OutcomeUnreadable,
	TooLarge:       OutcomeOversize,
	NotProvenFresh: OutcomeDeferred, NoDigestKey: OutcomeDeferred, SourcesUnknown: OutcomeDeferred, AdmissionFailed: OutcomeDeferred,
	LostRecord: OutcomeKeyLost,
	Kept:       OutcomeInStep, Restored: OutcomeInStep,
	Stamped: OutcomeWouldRoll, UndoTaken: OutcomeWouldRoll, Returned: OutcomeWouldRoll,
	Recorded: OutcomeWouldRecord,
	Observed: OutcomeObserved, ObserveMode: OutcomeObserved,
	OnHold:   OutcomeHeld,
	OptedOut: OutcomeOptedOut,
	Owned:    OutcomeDeclined, NotServed: OutcomeDeclined, Panicked: OutcomeDeclined,

	InvalidName: outcomeBeside, ForeignStamps: outcomeBeside, Unreferenced: outcomeBeside,
	PinUnreadable: outcomeBeside, NotPinned: outcomeBeside, UndoUnknown: outcomeBeside, UndoLost: outcomeBeside, UndoMixed: outcomeBeside,
	NotUndone: outcomeBeside, ReturnImpossible: outcomeBeside, DeclinedKept: outcomeBeside, DeclinedCleared: outcomeBeside, AgainUnknown: outcomeBeside, NotWatched: outcomeBeside, BaselineUnreadable: outcomeBeside, ConfigMaybeStale: outcomeBeside,
}

// OutcomeOf is the most restrictive outcome of an admission's reasons: what it comes to,
// and what was found.
func OutcomeOf(reasons ...Reason) Outcome {
	most := NoOutcome
	for _, reason := range reasons {
		most = max(most, outcomeOf[reason])
	}
	if most == NoOutcome {
		return OutcomeDeclined // there is an answer to everything
	}
	return most
}

// String returns the code, "" for NoOutcome.
func (o Outcome) String() string { return outcomes[o].Code }

// MarshalText returns the code, "unknown" for NoOutcome.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(cmp.Or(o.String(), "unknown")), nil }

// Warning returns the outcome as an admission warning.
func (o Outcome) Warning() string { return speaker + outcomes[o].Code + ": " + outcomes[o].Sentence }

// Outcomes returns the table, the least restrictive first.
func Outcomes() []OutcomeRow { return slices.Clone(outcomes[NoOutcome+1:]) }

// Outcome returns the outcome that the message gives, NoOutcome if it gives none.
func (m Message) Outcome() Outcome {
	i := slices.IndexFunc(outcomes[:], func(row OutcomeRow) bool { return row.Code == m.Code })
	return Outcome(max(i, 0))
}

// OutcomeIn returns the outcome in the warnings of a dry run; NoOutcome is unknown. If there are
// several, because another webhook changed the object and ours was called again, it is the most
// restrictive.
func OutcomeIn(warnings []string) Outcome {
	most := NoOutcome
	for _, warning := range warnings {
		message, _ := Parse(warning)
		most = max(most, message.Outcome())
	}
	return most
}
