package checksum

import "slices"

// Carried returns, of some sources, those of which a template has a true stamp, whatever the policy, and those without
// whose present content an undo declined, both with their content.
func (r *Ring) Carried(namespace string, references []Reference, sources []Source, held Records, contentOf func(Source) *Content) (carried, declined map[Source]Fingerprint) {
	carried, declined = map[Source]Fingerprint{}, map[Source]Fingerprint{}
	if r == nil {
		return carried, declined
	}
	policy := DefaultPolicy()
	policy.SecretProviderClasses = true
	policy.Also = sources // they count, whether the template names them or not
	stamps, back := Records{Stamps: held.Stamps}, held.undone()
	for _, s := range Selections(references, policy) {
		stamp, stamped := stamps.Of(s.Source)
		if !stamped || !Among(sources, s.Source) {
			continue
		}
		content := contentOf(s.Source)
		if verdict := r.Assess(namespace, s, stamp, true, content); verdict == True || verdict == Reselected {
			carried[s.Source] = content.Fingerprint()
			continue
		}
		if len(back.declined) > 0 && r.judge(namespace, s, &held, back, contentOf).declined {
			declined[s.Source] = content.Fingerprint()
		}
	}
	return carried, declined
}

// Older returns the sources of which new pods of a workload get older content than the present one: an undo declined it,
// or a template with pins has not taken it yet.
func (r *Review) Older(held Records) []Source {
	older, pins := slices.Clip(r.Declined), held.PinnedAt()
	for _, source := range r.Untrue {
		if _, pinned := pins[source]; pinned {
			older = append(older, source)
		}
	}
	return older
}
