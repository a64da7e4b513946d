package checksum

import "github.com/configstamp/configstamp/internal/reason"

// Review is the state of all references of one workload.
type Review struct {
	// Untrue are the sources whose content has changed since it was recorded.
	Untrue []Source
	// ToRecord are the selections that have no comparable record for them.
	ToRecord []Selection
	// Lost are those of ToRecord that had a record which cannot be compared.
	Lost []Source
	// KeyUnknown tells that a value of Lost was made with a key that the ring does not hold.
	KeyUnknown bool
	// Declined are the sources that have changed, and whose content an undo has declined:
	// whatever is on record of them stays. ToDecline are those of which something declined
	// cannot be compared any more: a recording writes it anew.
	Declined, ToDecline []Source
	// Missing says which required sources and keys are not there, Faults which
	// settings of sources cannot be read.
	Missing, Faults []Finding
}

// Records reports whether a recording would write anything.
func (r *Review) Records() bool { return len(r.ToRecord) > 0 || len(r.ToDecline) > 0 }

// MayRoll reports whether nothing is missing and everything could be read, the
// workload's own policy aside.
func (r *Review) MayRoll() bool { return len(r.Missing) == 0 && len(r.Faults) == 0 }

// Review assesses every reference of a workload.
func (r *Ring) Review(namespace string, policy *Policy, selections []Selection, held Records, contentOf func(Source) *Content) Review {
	var review Review
	back := held.undone()
	for _, s := range selections {
		content := contentOf(s.Source)
		s = s.of(content)
		review.Faults = append(review.Faults, s.faults(content)...)
		j := r.judge(namespace, &s, &held, back, content)
		if j.outdated {
			review.ToDecline = append(review.ToDecline, s.Source)
		}
		switch {
		case j.verdict == Missing:
			review.Missing = append(review.Missing, s.missingFinding(content))
		case j.declined:
			review.Declined = append(review.Declined, s.Source)
		default:
			r.review(&review, policy, s, &held, j.verdict)
		}
	}
	return review
}

// review sorts one reference in that can be had, and that nobody has declined.
func (r *Ring) review(review *Review, policy *Policy, s Selection, held *Records, verdict Verdict) {
	switch verdict {
	case Untrue:
		review.Untrue = append(review.Untrue, s.Source)
	case Unverifiable:
		review.Lost = append(review.Lost, s.Source)
		value, _ := held.Of(s.Source)
		if _, unknown := r.UnknownKey(value); unknown {
			review.KeyUnknown = true
		}
		review.ToRecord = append(review.ToRecord, s)
	case Unrecorded:
		// A new workload's pods are the first to report.
		if policy.RestartUnstamped && held.empty() && held.Declined == "" && !s.Source.Kind.reported() {
			review.Untrue = append(review.Untrue, s.Source)
		} else {
			review.ToRecord = append(review.ToRecord, s)
		}
	case Reselected:
		review.ToRecord = append(review.ToRecord, s)
	case True, Unreported, Missing:
	}
}

// faults tells which settings of a source that counts cannot be read.
func (s Selection) faults(content *Content) []Finding {
	if content == nil || content.Policy == nil || s.HoldOnly {
		return nil
	}
	return content.Policy.faults(s.Source)
}

func (s Selection) missingFinding(content *Content) Finding {
	if key, _ := s.Missing(content); key != "" {
		return Finding{Reason: reason.MissingKey, Source: s.Source, Key: key}
	}
	return Finding{Reason: reason.MissingSource, Source: s.Source}
}
