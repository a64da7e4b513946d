package checksum

import (
	"maps"
	"slices"
	"strings"

	"github.com/configstamp/configstamp/internal/reason"
)

// dropPins removes the new pins of some sources.
func (d *Decision) dropPins(sources []Source, findings ...Finding) {
	pins := d.Records.PinnedAt()
	for _, source := range sources {
		delete(pins, source)
		delete(d.NewPins, source)
	}
	d.Records.Pins, d.Findings = pinsOnRecord(pins), append(d.Findings, findings...)
}

// dropUnmade removes new pins whose snapshots could not be made.
func (d *Decision) dropUnmade(a *admission) {
	unmade := slices.SortedFunc(maps.Keys(d.NewPins), Source.Compare)
	unmade = slices.DeleteFunc(unmade, func(source Source) bool { return a.Unmade[source] == reason.NoReason })
	var findings []Finding
	for _, source := range unmade {
		if a.Unmade[source] == reason.NotPinned {
			findings = []Finding{{Reason: reason.NotPinned, Text: reason.UnpinnedByRequest}}
			break
		}
		findings = append(findings, Finding{Reason: reason.NotPinned, Source: source, Text: a.Unmade[source].Sentence(reason.Values{})})
	}
	if len(unmade) > 0 {
		d.dropPins(unmade, findings...)
	}
}

// pin pins a stamped source. Unproven content gets no new pin, but a recorded pin stays beside its stamp, and so does a
// recorded name that stands for the content under any key.
func (w *stamping) pin(s *judged, key string) {
	a := w.a
	held, recorded := w.held[s.Source]
	stays := !a.Fresh && recorded && a.Held.Stamps[key] == w.decision.Records.Stamps[key]
	if !w.pins || s.Source.Kind != ConfigMap || s.content == nil && !stays || s.content != nil && s.content.Policy != nil && s.content.Policy.Unpinned {
		return
	}
	if a.Policy.Observe {
		if !w.observed {
			w.find(Finding{Reason: reason.NotPinned, Text: reason.UnpinnedObserved})
		}
		w.observed = true
		return
	}
	references := w.referencesTo(s.Source)
	uses, why := PinUses(references, &a.Policy, s.Source, s.content)
	if why != "" {
		w.find(Finding{Reason: reason.NotPinned, Source: s.Source, Key: left(references, &a.Policy, s.Source, uses), Text: why})
	}
	switch {
	case len(uses) == 0:
	case stays:
		w.pinned[s.Source] = Pin{held.Snapshot, uses}
	case !a.Fresh:
		w.find(Finding{Reason: reason.NotPinned, Source: s.Source, Text: reason.UnpinnedUnproven})
	default:
		name := held.Snapshot
		if !w.ring.NamesSnapshot(a.Namespace, s.Source, s.content, name) {
			name = w.ring.SnapshotName(a.Namespace, s.Source, s.content)
		}
		if w.decision.NewPins == nil {
			w.decision.NewPins = Pins{}
		}
		w.pinned[s.Source], w.decision.NewPins[s.Source] = Pin{name, uses}, Pin{name, uses}
	}
}

// Misled returns the sources with a true stamp whose pinned snapshot has other content, so that pods start with that.
// snapshotOf is Snapshots.Known.
func (r *Ring) Misled(namespace string, selections []Selection, held Records, contentOf func(Source) *Content, snapshotOf func(of Source, name string) *Content) (misled []Source) {
	if snapshotOf == nil || len(held.Pins) == 0 {
		return nil
	}
	pins := held.PinnedAt()
	for i := range selections {
		source := selections[i].Source
		pin, pinned := pins[source]
		value, recorded := held.Of(source)
		if !pinned || !recorded {
			continue
		}
		content, has := contentOf(source), snapshotOf(source, pin.Snapshot)
		s := selections[i].of(content)
		if has != nil && r.assess(namespace, &s, value, true, content) == True && r.compare(namespace, &s, value, true, has) == Untrue {
			misled = append(misled, source)
		}
	}
	return misled
}

// misleads leaves a source of Misled without stamp and pin if its stamp would stay: pins change together with a stamp,
// and never alone. Its recorded value becomes the baseline.
func (w *stamping) misleads(s *judged, key string) bool {
	if !Among(w.misled, s.Source) || w.a.Held.Stamps[key] != s.record {
		return false
	}
	if w.decision.Records.Baseline == nil {
		w.decision.Records.Baseline = map[Source]string{}
	}
	w.decision.Records.Baseline[s.Source] = s.record
	w.find(Finding{Reason: reason.NotPinned, Source: s.Source, Text: reason.UnpinnedMisled})
	return true
}

// referencesTo returns the references of the template to one source.
func (w *stamping) referencesTo(source Source) []Reference {
	if w.references == nil {
		w.references = map[Source][]Reference{}
		for i := range w.a.References {
			at := w.a.References[i].Source
			w.references[at] = append(w.references[at], w.a.References[i])
		}
	}
	return w.references[source]
}

// left returns the uses that count and are not pinned, "" if none is pinned.
func left(references []Reference, policy *Policy, source Source, pinned []Use) string {
	if len(pinned) == 0 {
		return ""
	}
	var words []string
	for _, use := range pinnable() {
		is := func(r Reference) bool { return r.Source == source && r.Use == use }
		if slices.Contains(policy.Uses, use) && !slices.Contains(pinned, use) && slices.ContainsFunc(references, is) {
			words = append(words, string(use))
		}
	}
	return strings.Join(words, ",")
}

// PinUses returns the uses for which a source with some content can be pinned, and why not for others that count; "":
// there are none. A Pod applies a pin by uses alone, so none of the uses is pinned that share a volume which cannot be.
func PinUses(references []Reference, policy *Policy, source Source, content *Content) (uses []Use, why string) {
	counted, serves := false, map[string][]Use{} // by volume
	for i := range references {
		if r := &references[i]; r.Source == source && r.Where != nil && !slices.Contains(serves[r.Where.Volume], r.Use) {
			serves[r.Where.Volume] = append(serves[r.Where.Volume], r.Use)
		}
	}
	ignores := ignoresAny(content)
	var left []Use
	for i := range references {
		r := &references[i]
		if r.Source != source || !slices.Contains(policy.Uses, r.Use) {
			continue
		}
		counted = true
		if not := unpinnable(policy, r, serves, content, ignores); not != "" {
			why, left = not, append(left, serves[r.Where.Volume]...)
		} else if !slices.Contains(uses, r.Use) {
			uses = append(uses, r.Use)
		}
	}
	if !counted {
		return nil, reason.UnpinnedUnnamed
	}
	wanted := func(use Use) bool { return slices.Contains(uses, use) && !slices.Contains(left, use) }
	return slices.DeleteFunc(pinnable(), func(use Use) bool { return !wanted(use) }), why
}

// unpinnable returns why the volume of a reference cannot be pinned, "" if it can, or if there is none. serves are the
// uses that each volume serves, ignores is ignoresAny.
func unpinnable(policy *Policy, r *Reference, serves map[string][]Use, content *Content, ignores bool) string {
	if r.Where == nil || r.Where.Volume == "" {
		return ""
	}
	if slices.ContainsFunc(serves[r.Where.Volume], func(use Use) bool { return !slices.Contains(policy.Uses, use) }) {
		return reason.UnpinnedVolumeUse(r.Where.Volume)
	}
	if r.All && ignores || content != nil && slices.ContainsFunc(r.Keys, content.ignores) {
		return reason.UnpinnedVolumeKey(r.Where.Volume)
	}
	return ""
}

// ignores reports whether the settings of a source ignore a key.
func (c *Content) ignores(key string) bool {
	return c.Policy != nil && matchesAny(c.Policy.IgnoreKeys, key)
}

// ignoresAny reports whether a source has a key that it ignores.
func ignoresAny(content *Content) bool {
	return content != nil && slices.ContainsFunc(content.Entries, func(e Entry) bool { return content.ignores(e.Name) })
}
