package impact

import (
	"slices"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
)

// app is a workload whose content changes.
type app struct {
	*Workload
	selections []checksum.Selection
	review     checksum.Review
	rollsFor   []checksum.Source
}

// haltedBy reports whether a workload rolls for what an undo of another one has declined.
func (a *app) haltedBy(s Stay) bool {
	return s.Workload.Namespace == a.Ref.Namespace && slices.Contains(a.rollsFor, s.Source)
}

// finding is what is missing or cannot be read, if that is why it is held.
func (a *app) finding(why reason.Reason) checksum.Finding {
	switch why {
	case reason.MissingSource, reason.MissingKey:
		return a.review.Missing[0]
	case reason.UnreadableSetting:
		if len(a.Policy.Faults) > 0 {
			return a.Policy.Faults[0].Finding()
		}
		return a.review.Faults[0]
	default:
		return checksum.Finding{}
	}
}

// concerned are the workloads whose content changes, so that they would roll, and why the
// others that use what is edited would not.
func (q *Question) concerned() (all []*app, stays []Stay) {
	for i := range q.Workloads {
		w := &q.Workloads[i]
		selections := checksum.Selections(w.References, w.Policy)
		uses := q.used(w, selections)
		if len(uses) == 0 {
			continue
		}
		if why := w.outside(); why != reason.NoReason {
			for _, e := range uses {
				stays = append(stays, Stay{Workload: w.Ref, Source: e.At.Source, Why: why})
			}
			continue
		}
		a := &app{Workload: w, selections: selections}
		a.review = q.Ring.Review(w.Ref.Namespace, &w.Policy, selections, w.Records, q.of(w))
		for _, e := range uses {
			if why, finding := q.stays(a, e); why != reason.NoReason {
				stays = append(stays, Stay{Workload: w.Ref, Source: e.At.Source, Why: why, Finding: finding, Before: a.lacked(e), Pinned: w.Records.PinnedAt()[e.At.Source].Snapshot != ""})
			} else {
				a.rollsFor = append(a.rollsFor, e.At.Source)
			}
		}
		if len(a.rollsFor) == 0 {
			a.rollsFor = q.released(a, uses)
			mine := len(stays) - len(uses) // they are the last, and it does not stay for what releases it
			stays = append(stays[:mine], slices.DeleteFunc(stays[mine:], func(s Stay) bool { return slices.Contains(a.rollsFor, s.Source) })...)
		}
		if len(a.rollsFor) > 0 {
			slices.SortFunc(a.rollsFor, checksum.Source.Compare)
			all = append(all, a)
		}
	}
	return all, stays
}

// released are the edits without which a workload would not roll for what has changed
// before: something required was missing, or a setting could not be read.
func (q *Question) released(a *app, uses []*Edit) (sources []checksum.Source) {
	if len(a.review.Untrue) == 0 || !a.review.MayRoll() {
		return nil
	}
	before := q.Ring.Review(a.Ref.Namespace, &a.Policy, a.selections, a.Records, func(source checksum.Source) *checksum.Content {
		at := rollout.SourceRef{Namespace: a.Ref.Namespace, Source: source}
		if e := q.edit(at); e != nil {
			return e.Was
		}
		return q.Content(at)
	})
	for _, e := range uses {
		held := func(f checksum.Finding) bool { return f.Source == e.At.Source }
		if slices.ContainsFunc(before.Missing, held) || slices.ContainsFunc(before.Faults, held) {
			sources = append(sources, e.At.Source)
		}
	}
	return sources
}

// of gives what the sources of a workload hold after the edits.
func (q *Question) of(w *Workload) func(checksum.Source) *checksum.Content {
	return func(source checksum.Source) *checksum.Content {
		return q.content(rollout.SourceRef{Namespace: w.Ref.Namespace, Source: source})
	}
}

// used are the edits of what a workload uses, by its template or its policy.
func (q *Question) used(w *Workload, selections []checksum.Selection) (uses []*Edit) {
	for i := range q.Edits {
		e := &q.Edits[i]
		if e.At.Namespace != w.Ref.Namespace {
			continue
		}
		if find(selections, e.At.Source) != nil || slices.ContainsFunc(w.References, func(r checksum.Reference) bool { return r.Source == e.At.Source }) {
			uses = append(uses, e)
		}
	}
	return uses
}

func find(selections []checksum.Selection, source checksum.Source) *checksum.Selection {
	if i := slices.IndexFunc(selections, func(s checksum.Selection) bool { return s.Source == source }); i >= 0 {
		return &selections[i]
	}
	return nil
}

// outside tells why nothing ever rolls a workload; NoReason: something may.
func (w *Workload) outside() reason.Reason {
	switch {
	case w.Ref.Kind.CreateOnly:
		return reason.AfterCreation
	case !w.Served:
		return w.Why
	case w.Unreadable:
		return reason.TemplateUnreadable
	}
	return reason.NoReason
}

// stays tells why an edit rolls nothing of a workload; NoReason: it does, unless
// something holds it.
func (q *Question) stays(a *app, e *Edit) (why reason.Reason, finding checksum.Finding) {
	source := e.At.Source
	selection := find(a.selections, source)
	is := func(f checksum.Finding) bool { return f.Source == source }
	if at := slices.IndexFunc(a.review.Missing, is); at >= 0 {
		return a.review.Missing[at].Reason, a.review.Missing[at]
	}
	differs := func() bool { return selection != nil && selection.Differs(e.Was, e.Is) }
	switch {
	case slices.Contains(a.review.Untrue, source):
		value, recorded := a.Records.Of(source)
		if q.Ring.Assess(a.Ref.Namespace, *selection, value, recorded, e.Was) != checksum.Untrue || differs() {
			return reason.NoReason, checksum.Finding{}
		} // else what it waits for already is another edit
	case !differs():
	case slices.ContainsFunc(a.review.ToRecord, func(s checksum.Selection) bool { return s.Source == source }):
		return reason.Recorded, checksum.Finding{}
	case slices.Contains(a.review.Declined, source):
		return reason.DeclinedKept, checksum.Finding{}
	default:
		return reason.Kept, checksum.Finding{} // it carries already what the source is to hold
	}
	return a.Policy.LeavesOut(a.References, source, e.Was, e.Is), checksum.Finding{}
}

// lacked reports whether its containers could not start with what a source held before.
func (a *app) lacked(e *Edit) bool {
	selection := find(a.selections, e.At.Source)
	if selection == nil {
		return false
	}
	_, missing := selection.Missing(e.Was)
	return missing
}
