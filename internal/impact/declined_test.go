package impact_test

import (
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
)

// Content that an undo of one workload has sent back before, is put back: it stays with what
// it has, and the others wait.
func TestForecast_DeclinedContentComesBack(t *testing.T) {
	q := suppose(t, limits(), nil, edited(), web("undone"), web("another"))
	edit := q.Edits[0]
	undone := &q.Workloads[0]
	selection := checksum.Selections(undone.References, undone.Policy)[0]
	undone.Records.Declined = checksum.Declined{config: {q.Ring.Digest("shop", selection, edit.Is)}}.String()
	check := func(stays []impact.Stay) {
		t.Helper()
		if len(stays) != 2 || stays[0].Why != reason.Halted || !stays[0].Would || stays[1].Why != reason.DeclinedKept {
			t.Errorf("stay %+v, want another halted, and the undone one with what it has", stays)
		}
	}
	check(q.Answer().Stays)
	if rolls := q.Answer().Rolls; len(rolls) > 0 {
		t.Errorf("%v roll, want none", rolls)
	}
	other := *q
	other.Edits = []impact.Edit{{At: rollout.SourceRef{Namespace: "shop", Source: config}, Was: edit.Was, Is: &checksum.Content{}}}
	if rolls := other.Answer().Rolls; len(rolls) != 2 {
		t.Errorf("%d roll for other content, want both", len(rolls))
	}
}
