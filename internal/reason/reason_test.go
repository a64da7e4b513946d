package reason_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/internal/reason"
)

// A reason that lacks its row, or a part of it, is found here; a row that lacks a
// column does not compile.
func TestEveryReasonIsComplete(t *testing.T) {
	code, event := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), regexp.MustCompile(`^([A-Z][a-z]+)+$`)
	codes := map[string]bool{}
	for i, row := range reason.Rows() {
		why := reason.NoReason + 1 + reason.Reason(i)
		if !code.MatchString(row.Code) || codes[row.Code] {
			t.Errorf("reason %d has the code %q; it lacks a row, or another has that code", i+1, row.Code)
		}
		codes[row.Code] = true
		if row.Sentence == "" || strings.HasSuffix(row.Sentence, ".") || strings.Contains(row.Sentence, "|") {
			t.Errorf("%s reads %q", why, row.Sentence)
		}
		if told := row.Type != reason.Silent; told && !event.MatchString(row.Event) || !told && row.Event != "" {
			t.Errorf("%s has an event of the type %q and the reason %q", why, row.Type, row.Event)
		}
		if labelled := row.In&^(reason.AdmissionReasons|reason.Forecasts) != 0; labelled && !code.MatchString(row.Label) || !labelled && row.Label != "" {
			t.Errorf("%s has the label %q for the metrics %b", why, row.Label, row.In)
		}
		if row.In == 0 && row.Event == "" {
			t.Errorf("neither an event, a metric nor a forecast tells of %s", why)
		}
		if row.In&reason.Waiting != 0 && row.Event == "" {
			t.Errorf("workloads wait for %s, and no event says so", why)
		}
	}
}
