package checksum

import (
	"slices"
	"strings"

	"github.com/configstamp/configstamp/internal/reason"
)

// ReturnsTo reports whether a workload that has failed may go back from its records to those of an older revision with
// the same template: why is empty, or one of the Unreturned sentences. sources are those whose stamps differ; without
// any, there is nothing to go back from.
func (r *Records) ReturnsTo(older *Records) (sources []Source, why string) {
	pinned, declined := map[string]Source{}, r.declined()
	for source := range older.PinnedAt() {
		pinned[StampKey(source)] = source
	}
	for key, stamp := range r.Stamps {
		was := older.Stamps[key]
		switch source, is := pinned[key]; {
		case was == stamp:
		case strings.HasPrefix(key, string(Secret)+"."):
			return nil, reason.UnreturnedSecret
		case !is || was == "":
			return nil, reason.UnreturnedUnpinned
		case slices.Contains(declined[source], was):
			return nil, reason.UnreturnedDeclined
		default:
			sources = append(sources, source)
		}
	}
	for key := range older.Stamps {
		if r.Stamps[key] == "" {
			return nil, reason.UnreturnedUnpinned
		}
	}
	return sources, ""
}

// giveBack has a workload go back to the stamps and pins of an older revision, and declines what it has failed with. If
// one of the sources holds something else by now, it does nothing: that rolls.
func giveBack(ring *Ring, a *admission) Decision {
	decision := Decision{Records: a.Held, Outcome: reason.Kept}
	switch {
	case !a.Fresh:
		decision.Outcome, decision.Findings = reason.NotProvenFresh, []Finding{{Reason: reason.NotProvenFresh}}
		return decision
	case a.Back == nil:
		decision.Findings = []Finding{{Reason: reason.ReturnImpossible, Text: a.NoReturn}}
		return decision
	}
	sources, _ := a.Held.ReturnsTo(a.Back)
	declined, pins := a.Held.declined(), a.Back.PinnedAt()
	if declined == nil {
		declined = Declined{}
	}
	var findings []Finding
	for _, source := range sources {
		failed := a.Held.Stamps[StampKey(source)]
		i := slices.IndexFunc(a.Selections, func(s Selection) bool { return s.Source == source })
		if i < 0 {
			return decision
		}
		content := a.Content(source)
		s := a.Selections[i].of(content)
		if !ring.holds(a.Namespace, &s, failed, content) {
			return decision
		}
		values := slices.Insert(declined[source], 0, failed)
		declined[source] = values[:min(len(values), declinedKept)]
		findings = append(findings, Finding{Reason: reason.Returned, Source: source, Text: a.madeAt(pins[source])})
	}
	decision.Records.Stamps, decision.Records.Pins, decision.Records.Declined = a.Back.Stamps, a.Back.Pins, declined.String()
	decision.Outcome, decision.Findings = reason.Returned, findings
	return decision
}
