package checksum

import (
	"slices"

	"github.com/configstamp/configstamp/internal/reason"
)

// Review is the state of all references of one workload.
type Review struct {
	// Untrue are the sources whose content has changed since it was recorded.
	Untrue []Source
	// ToRecord are the selections that have no comparable record for them.
	ToRecord []Selection
	// Lost are those of ToRecord that had a record which cannot be compared.
	Lost []Source
	// KeyUnknown reports that a value of Lost was made with a key that is not in the ring.
	KeyUnknown bool
	// Declined are the changed sources whose content an undo declined: their records stay. ToDecline are those with a
	// declined value that cannot be compared any more: a recording writes it anew.
	Declined, ToDecline []Source
	declined            Declined // with the values of ToDecline written anew
	// Missing are the required sources and keys that do not exist, Faults the settings of sources that cannot be read.
	Missing, Faults []Finding
}

// Records reports whether a recording would write anything.
func (r *Review) Records() bool { return len(r.ToRecord) > 0 || len(r.ToDecline) > 0 }

// MayRoll reports whether nothing is missing and everything could be read, the
// workload's own policy aside.
func (r *Review) MayRoll() bool { return len(r.Missing) == 0 && len(r.Faults) == 0 }

// Review assesses every reference of a workload.
func (r *Ring) Review(namespace string, policy *Policy, selections []Selection, held Records, contentOf func(Source) *Content) Review {
	back := held.undone()
	review := Review{declined: back.declined}
	for _, selection := range selections {
		s := r.judge(namespace, selection, &held, back, contentOf)
		review.Faults = append(review.Faults, s.faults()...)
		if s.outdated {
			review.ToDecline = append(review.ToDecline, s.Source)
			review.declined[s.Source] = s.values
		}
		switch {
		case s.verdict == Missing:
			review.Missing = append(review.Missing, s.missing())
		case s.declined:
			review.Declined = append(review.Declined, s.Source)
		// A new workload's pods are the first to report.
		case s.verdict == Untrue,
			s.verdict == Unrecorded && policy.RestartUnstamped && held.empty() && held.Declined == "" && !s.Source.Kind.reported():
			review.Untrue = append(review.Untrue, s.Source)
		case s.verdict == Unverifiable:
			review.Lost = append(review.Lost, s.Source)
			_, unknown := r.UnknownKey(s.record)
			review.KeyUnknown = review.KeyUnknown || unknown
			review.ToRecord = append(review.ToRecord, s.Selection)
		case s.verdict == Unrecorded, s.verdict == Reselected:
			review.ToRecord = append(review.ToRecord, s.Selection)
		}
	}
	return review
}

// judged is one source of a workload, compared with the records.
type judged struct {
	Selection // with the settings of the source
	content   *Content
	record    string
	recorded  bool
	verdict   Verdict
	// declined reports that the content differs from the record, and that an undo declined it. Without a record there
	// is nothing that pods could keep.
	declined bool
	// outdated reports that a declined value cannot be compared any more. values are the declined values without
	// those, but with the present content if it counts as declined.
	outdated bool
	values   []string
}

// judge compares a source with the records. If a declined value cannot be compared any more, the present content
// counts as declined, because that restarts nothing.
func (r *Ring) judge(namespace string, selection Selection, held *Records, back undone, contentOf func(Source) *Content) judged {
	s := judged{content: contentOf(selection.Source)}
	s.Selection = selection.of(s.content)
	s.record, s.recorded = held.Of(s.Source)
	s.verdict = r.assess(namespace, &s.Selection, s.record, s.recorded, s.content)
	if len(back.declined[s.Source]) == 0 || s.verdict == Unreported {
		return s
	}
	is := false
	for _, value := range back.declined[s.Source] {
		verdict := r.compare(namespace, &s.Selection, value, true, s.content)
		is = is || verdict == True || verdict == Reselected
		if verdict == Unverifiable {
			s.outdated = true
		} else {
			s.values = append(s.values, value)
		}
	}
	_, lost := r.UnknownKey(s.record)
	switch {
	case s.verdict == True || s.verdict == Unrecorded || s.verdict == Missing && !is:
	case is:
		s.declined = true
	case s.verdict == Unverifiable && lost: // it is recorded anew
	case s.outdated:
		s.declined = true
		s.values = slices.Insert(s.values, 0, r.Digest(namespace, s.Selection, s.content))
	case s.verdict == Unverifiable: // it differs from the declined content, and pods do not have that
		if s.verdict = Untrue; r.NamesSnapshot(namespace, s.Source, s.content, back.pins()[s.Source].Snapshot) {
			s.verdict = True
		}
	}
	return s
}

// faults returns the settings of a source that cannot be read, if it counts.
func (s *judged) faults() []Finding {
	if s.content == nil || s.content.Policy == nil || s.HoldOnly {
		return nil
	}
	return s.content.Policy.faults(s.Source)
}

func (s *judged) missing() Finding {
	if key, _ := s.Missing(s.content); key != "" {
		return Finding{Reason: reason.MissingKey, Source: s.Source, Key: key}
	}
	return Finding{Reason: reason.MissingSource, Source: s.Source}
}
