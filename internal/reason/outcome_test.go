package reason_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/configstamp/configstamp/internal/reason"
)

// The codes and their order are what scripts and the plugin know.
func TestTheCodesOfOutcomesAreStable(t *testing.T) {
	want := []string{"in-step", "would-roll", "would-record", "observed", "held", "missing", "unreadable", "deferred", "oversize", "opted-out", "key-lost", "declined"}
	var got []string
	for i, row := range reason.Outcomes() {
		outcome := reason.NoOutcome + 1 + reason.Outcome(i)
		got = append(got, row.Code)
		if read, ok := reason.Parse(outcome.Warning()); !ok || read.Outcome() != outcome || read.Code != row.Code || read.Sentence != row.Sentence {
			t.Errorf("%q is read as %q, %t", outcome.Warning(), read, ok)
		}
		// The API server may cut a warning at 256 characters, and drops one with control characters.
		if form := regexp.MustCompile(`^configstamp: [a-z-]+: [ -~]{10,180}[^.]$`); !form.MatchString(outcome.Warning()) {
			t.Errorf("the warning reads %q", outcome.Warning())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("codes %q, want %q", got, want)
	}
	if text, err := reason.NoOutcome.MarshalText(); err != nil || string(text) != "unknown" {
		t.Errorf("no answer is written %q, error %v", text, err)
	}
}

// A new reason of admissions that nobody gave an outcome is found here.
func TestEveryReasonOfAnAdmissionHasOneOutcome(t *testing.T) {
	want := map[string][]string{
		"in-step":      {"kept", "restored"},
		"would-roll":   {"stamped", "undo", "returned"},
		"would-record": {"recorded"},
		"observed":     {"observe-mode", "observed"},
		"held":         {"held"},
		"missing":      {"missing-source", "missing-key"},
		"unreadable":   {"unreadable-setting", "template-unreadable"},
		"deferred":     {"not-proven-fresh", "no-key", "sources-unknown", "admission-failed"},
		"oversize":     {"annotations-too-large"},
		"opted-out":    {"opted-out"},
		"key-lost":     {"lost-record"},
		"declined":     {"panic", "owned", "not-served"},
	}
	beside := []string{"invalid-name", "foreign-stamps", "unreferenced-name",
		"pin-unreadable", "not-pinned", "undo-unknown", "undo-lost", "undo-mixed", "not-undone", "return-impossible", "declined-kept", "declined-cleared", "again-unknown", "not-watched", "baseline-unreadable", "config-maybe-stale"}
	for i, row := range reason.Rows() {
		why := reason.NoReason + 1 + reason.Reason(i)
		outcome := reason.OutcomeOf(why)
		if row.In&(reason.AdmissionReasons|reason.AdmissionOutcomes) == 0 {
			if slices.Contains(want[outcome.String()], row.Code) {
				t.Errorf("%s is no reason of an admission", why)
			}
			continue
		}
		if slices.Contains(beside, row.Code) {
			if with := reason.OutcomeOf(reason.Kept, why); with != reason.OutcomeInStep {
				t.Errorf("%s decides: with it %s becomes %s", why, reason.OutcomeInStep, with)
			}
			continue
		}
		if !slices.Contains(want[outcome.String()], row.Code) {
			t.Errorf("%s has the outcome %s: is that right? Give it one in outcome.go, and here", why, outcome)
		}
		// A warning beside the outcome is never taken for another outcome.
		warning := why.Warning(reason.Values{Source: "configmap/web", Key: "in-step: ", Text: "in-step: "})
		if read, _ := reason.Parse(warning); read.Outcome() != reason.NoOutcome && read.Outcome() != outcome {
			t.Errorf("%q is read as %s", warning, read.Code)
		}
	}
}

func TestOutcomesAreTheMostRestrictive(t *testing.T) {
	for _, test := range []struct {
		reasons []reason.Reason
		want    reason.Outcome
	}{
		{[]reason.Reason{reason.OnHold, reason.MissingKey}, reason.OutcomeMissing},
		{[]reason.Reason{reason.OnHold, reason.MissingKey, reason.UnreadableSetting}, reason.OutcomeUnreadable},
		{[]reason.Reason{reason.Kept, reason.MissingSource, reason.InvalidName}, reason.OutcomeMissing},
		{[]reason.Reason{reason.AdmissionFailed, reason.Panicked}, reason.OutcomeDeclined},
		{nil, reason.OutcomeDeclined},
		{[]reason.Reason{reason.NoReason}, reason.OutcomeDeclined},
	} {
		if got := reason.OutcomeOf(test.reasons...); got != test.want {
			t.Errorf("of %v it is %q, want %q", test.reasons, got, test.want)
		}
	}
}

func TestOutcomeIn(t *testing.T) {
	inStep, roll := reason.OutcomeInStep.Warning(), reason.OutcomeWouldRoll.Warning()
	for _, test := range []struct {
		warnings []string
		want     reason.Outcome
	}{
		{nil, reason.NoOutcome},
		{[]string{"configstamp: configmap/x does not exist: pods cannot start without it"}, reason.NoOutcome},
		{[]string{"in-step: of somebody else", "somebody: in-step: x", "configstamp: in-step", "configstamp: in-steps: x", "configstamp: : x"}, reason.NoOutcome},
		{[]string{"something else", inStep}, reason.OutcomeInStep},
		{[]string{roll, inStep}, reason.OutcomeWouldRoll},
		{[]string{"configstamp: in-step: in other words"}, reason.OutcomeInStep},
	} {
		if got := reason.OutcomeIn(test.warnings); got != test.want {
			t.Errorf("in %q it is %q, want %q", test.warnings, got, test.want)
		}
	}
}
