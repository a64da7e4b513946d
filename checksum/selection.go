package checksum

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// RequiredKey is a key without which a container cannot start.
type RequiredKey struct {
	Name string
	// DataOnly reports that an environment variable reads it: a key in binaryData is missing for that.
	DataOnly bool
}

// Selection is what one workload references of one source, all references
// that count together.
type Selection struct {
	Source Source
	// All selects every key there is; then Keys is empty.
	All bool
	// Except are globs of keys that are not selected, sorted, where All is.
	Except []string
	// Keys are the selected keys, sorted. They may be absent from the source.
	Keys []string
	// HoldOnly reports that nothing of the source counts by policy. It is neither stamped nor recorded, but pods cannot
	// start without it, so nothing may roll while it is missing. All, Keys and Alternatives are empty then.
	HoldOnly bool
	// Required reports that a container needs the source to exist, whether its reference counts by policy or not.
	Required bool
	// RequiredKeys are the keys that must exist, sorted.
	RequiredKeys []RequiredKey
	// Alternatives are the other selections that the same template gives under
	// another policy, for comparing values that were written under it.
	Alternatives []Selection
	// ifMarked reports that it counts only if its source has Reloader's mark, and reloaded that Reloader's "ignore" counts.
	ifMarked, reloaded bool
}

// ID names the selection within a value: "all" or 8 hex digits.
func (s Selection) ID() string {
	what, names := "keys", s.Keys
	switch {
	case s.All && len(s.Except) == 0:
		return selectionAll
	case s.All:
		what, names = "all but", s.Except
	}
	text := number(field(nil, what), len(names))
	for _, name := range names {
		text = field(text, name)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:idBytes])
}

// usesByPolicy are the sets of uses that any setting of restart-on counts; see
// Selection.Alternatives.
func usesByPolicy() [][]Use {
	return [][]Use{{Startup}, {Startup, Live}, {Startup, Live, Node}}
}

// Selections joins references, and what counts also, into one selection for each
// source that counts or that containers cannot start without, sorted by source. A
// reference whose name no object can have selects nothing. The settings of sources are not in it yet: see Selection.of.
func Selections(references []Reference, policy Policy) []Selection {
	sorted := make([]*Reference, 0, len(references)+len(policy.Also))
	for i := range references {
		sorted = append(sorted, &references[i])
	}
	for _, sources := range [][]Source{policy.Also, policy.named} {
		for _, source := range sources {
			sorted = append(sorted, &Reference{Source: source, Use: Startup, All: true, Optional: true, byPolicy: true})
		}
	}
	slices.SortStableFunc(sorted, func(a, b *Reference) int { return a.Source.Compare(b.Source) })
	selections := make([]Selection, 0, len(references))
	for len(sorted) > 0 {
		source := sorted[0].Source
		n := 1
		for n < len(sorted) && sorted[n].Source == source {
			n++
		}
		if s, ok := selectionOf(sorted[:n], &policy); ok {
			selections = append(selections, s)
		}
		sorted = sorted[n:]
	}
	return selections
}

// selectionOf joins all references to one source.
func selectionOf(references []*Reference, policy *Policy) (Selection, bool) {
	source := references[0].Source
	if !source.Nameable() || !policy.Serves(source.Kind) {
		return Selection{}, false
	}
	s := Selection{Source: source, HoldOnly: true}
	if counted, ifMarked := policy.counts(source); counted && counts(references, policy.Uses) {
		s = join(references, policy.Uses)
		s.ifMarked, s.reloaded = ifMarked, policy.foreign != nil && policy.foreign.Reloader
		s.Alternatives = alternatives(s, policy.Uses, references)
	}
	s.require(references)
	return s, !s.HoldOnly || s.Required
}

// counts reports whether any of references is of one of uses.
func counts(references []*Reference, uses []Use) bool {
	return slices.ContainsFunc(references, func(r *Reference) bool { return slices.Contains(uses, r.Use) })
}

// join makes one selection of those references to one source that are of one
// of uses.
func join(references []*Reference, uses []Use) Selection {
	s := Selection{Source: references[0].Source}
	for _, reference := range references {
		if slices.Contains(uses, reference.Use) {
			s.All = s.All || reference.All
			s.Keys = gather(s.Keys, sortedUnique, reference.Keys...)
		}
	}
	if s.All {
		s.Keys = nil
	}
	s.Keys = sortedUnique(s.Keys)
	return s
}

// alternatives are the selections other than s that any setting of restart-on
// makes of the same references, with and without those that the policy adds.
func alternatives(s Selection, chosen []Use, references []*Reference) []Selection {
	var found []Selection
	choose := func(from []*Reference, present bool) {
		for _, uses := range usesByPolicy() {
			same := present && !slices.ContainsFunc(from, func(r *Reference) bool {
				return slices.Contains(uses, r.Use) != slices.Contains(chosen, r.Use)
			})
			if same || !counts(from, uses) {
				continue
			}
			if other := join(from, uses); other.ID() != s.ID() {
				found = append(found, other)
			}
		}
	}
	choose(references, true)
	if added := func(r *Reference) bool { return r.byPolicy }; slices.ContainsFunc(references, added) {
		choose(slices.DeleteFunc(slices.Clone(references), added), false)
	}
	return found
}

// require adds what containers cannot start without. The node's own Secrets are optional, and the kubelet does not read
// volumes that are not mounted.
func (s *Selection) require(references []*Reference) {
	for _, reference := range references {
		if reference.Optional || reference.Use == Unused || reference.Use == Node {
			continue
		}
		s.Required = true
		for _, name := range reference.RequiredKeys {
			s.RequiredKeys = gather(s.RequiredKeys, strictestFirst, RequiredKey{Name: name, DataOnly: reference.Env})
		}
	}
	s.RequiredKeys = strictestFirst(s.RequiredKeys)
}

// strictestFirst sorts required keys, of each the stricter one first, so that
// Missing finds it, and takes out what is there twice.
func strictestFirst(keys []RequiredKey) []RequiredKey {
	slices.SortFunc(keys, func(a, b RequiredKey) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), compareTruths(b.DataOnly, a.DataOnly))
	})
	return slices.Compact(keys)
}

// of returns the selection under the settings of its source.
func (s Selection) of(content *Content) Selection {
	if content == nil && s.Source.Kind == ConfigMap && LooksLikeSnapshot(s.Source.Name) {
		// A copy of a Pod names snapshots, which are no sources: it is no reference.
		return Selection{Source: s.Source, HoldOnly: true}
	}
	if content != nil && content.Unwatched {
		return Selection{Source: s.Source, HoldOnly: true}
	}
	if s.HoldOnly || content == nil || (content.Policy == nil && !s.ifMarked) {
		return s
	}
	policy := content.Policy
	if policy == nil {
		policy = &SourcePolicy{}
	}
	if policy.Ignore || (s.reloaded && policy.Unreloaded) || (s.ifMarked && !policy.Marked) {
		s.HoldOnly, s.All, s.Keys, s.Alternatives = true, false, nil, nil
		return s
	}
	if len(policy.IgnoreKeys) == 0 {
		return s
	}
	alternatives := s.Alternatives
	whole := s
	s = s.without(policy.IgnoreKeys)
	s.Alternatives = slices.Clone(alternatives)
	for _, other := range alternatives {
		s.Alternatives = append(s.Alternatives, other.without(policy.IgnoreKeys))
	}
	s.Alternatives = append(s.Alternatives, whole)
	return s
}

// Counts reports whether anything of a source with some content counts, by policy and by the settings of the source.
func (s Selection) Counts(content *Content) bool { return !s.of(content).HoldOnly }

// without is the selection less the keys that some globs name.
func (s Selection) without(globs []string) Selection {
	if s.All {
		s.Except = globs
		return s
	}
	s.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(key string) bool { return matchesAny(globs, key) })
	return s
}

// Missing returns what a container cannot start without: the first required key that is missing, or "" with true if the
// source itself is missing. A source without one of its required keys counts as missing as a whole.
func (s Selection) Missing(content *Content) (key string, missing bool) {
	if content == nil {
		return "", s.Required
	}
	for _, required := range s.RequiredKeys {
		entry, ok := content.Entry(required.Name)
		if !ok || (required.DataOnly && entry.Binary) {
			return required.Name, true
		}
	}
	return "", false
}
