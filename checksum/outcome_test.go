package checksum_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// The codes and their order are what scripts and the plugin know.
func TestTheCodesOfOutcomesAreStable(t *testing.T) {
	want := []string{"in-step", "would-roll", "would-record", "observed", "held", "missing", "unreadable", "deferred", "oversize", "opted-out", "key-lost", "declined"}
	var got []string
	for i, row := range checksum.Outcomes() {
		outcome := checksum.NoOutcome + 1 + checksum.Outcome(i)
		got = append(got, row.Code)
		if read, ok := checksum.ParseOutcome(outcome.Warning()); !ok || read != outcome || outcome.String() != row.Code {
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
	if text, err := checksum.NoOutcome.MarshalText(); err != nil || string(text) != "unknown" {
		t.Errorf("no answer is written %q, error %v", text, err)
	}
}

// A new reason of admissions that nobody gave an outcome is found here.
func TestEveryReasonOfAnAdmissionHasOneOutcome(t *testing.T) {
	want := map[string][]string{
		"in-step":      {"kept", "restored"},
		"would-roll":   {"stamped", "undo"},
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
		"pin-unreadable", "not-pinned", "undo-unknown", "undo-lost", "undo-mixed", "not-undone", "declined-kept", "declined-cleared", "again-unknown", "not-watched", "config-maybe-stale"}
	for i, row := range checksum.Reasons() {
		reason := checksum.NoReason + 1 + checksum.Reason(i)
		outcome := checksum.OutcomeOf(reason)
		if row.In&(checksum.AdmissionReasons|checksum.AdmissionOutcomes) == 0 {
			if slices.Contains(want[outcome.String()], row.Code) {
				t.Errorf("%s is no reason of an admission", reason)
			}
			continue
		}
		if slices.Contains(beside, row.Code) {
			if with := checksum.OutcomeOf(checksum.Kept, reason); with != checksum.OutcomeInStep {
				t.Errorf("%s decides: with it %s becomes %s", reason, checksum.OutcomeInStep, with)
			}
			continue
		}
		if !slices.Contains(want[outcome.String()], row.Code) {
			t.Errorf("%s has the outcome %s: is that right? Give it one in checksum/outcome.go, and here", reason, outcome)
		}
		// What people are told beside it is never taken for another outcome.
		finding := checksum.Finding{Reason: reason, Source: message, Key: "in-step: ", Text: "in-step: "}
		if read, ok := checksum.ParseOutcome(finding.Warning()); ok {
			t.Errorf("%q is read as %s", finding.Warning(), read)
		}
	}
}

func TestOutcomesAreTheMostRestrictive(t *testing.T) {
	for _, test := range []struct {
		reasons []checksum.Reason
		want    checksum.Outcome
	}{
		{[]checksum.Reason{checksum.OnHold, checksum.MissingKey}, checksum.OutcomeMissing},
		{[]checksum.Reason{checksum.OnHold, checksum.MissingKey, checksum.UnreadableSetting}, checksum.OutcomeUnreadable},
		{[]checksum.Reason{checksum.Kept, checksum.MissingSource, checksum.InvalidName}, checksum.OutcomeMissing},
		{[]checksum.Reason{checksum.AdmissionFailed, checksum.Panicked}, checksum.OutcomeDeclined},
		{nil, checksum.OutcomeDeclined},
		{[]checksum.Reason{checksum.NoReason}, checksum.OutcomeDeclined},
	} {
		if got := checksum.OutcomeOf(test.reasons...); got != test.want {
			t.Errorf("of %v it is %q, want %q", test.reasons, got, test.want)
		}
	}
}

func TestOutcomeIn(t *testing.T) {
	inStep, roll := checksum.OutcomeInStep.Warning(), checksum.OutcomeWouldRoll.Warning()
	for _, test := range []struct {
		warnings []string
		want     checksum.Outcome
	}{
		{nil, checksum.NoOutcome},
		{[]string{"configstamp: configmap/x does not exist: pods cannot start without it"}, checksum.NoOutcome},
		{[]string{"in-step: of somebody else", "somebody: in-step: x", "configstamp: in-step", "configstamp: in-steps: x", "configstamp: : x"}, checksum.NoOutcome},
		{[]string{"something else", inStep}, checksum.OutcomeInStep},
		{[]string{roll, inStep}, checksum.OutcomeWouldRoll},
		{[]string{"configstamp: in-step: in other words"}, checksum.OutcomeInStep},
	} {
		if got := checksum.OutcomeIn(test.warnings); got != test.want {
			t.Errorf("in %q it is %q, want %q", test.warnings, got, test.want)
		}
	}
}
