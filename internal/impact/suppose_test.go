package impact

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
)

// Seen is what is known of a source.
type Seen struct {
	// Missing tells that it does not exist.
	Missing bool
	// Content is what it holds, nil when nobody has read it; then Policy is what it says of
	// itself.
	Content *checksum.Content
	Policy  *checksum.SourcePolicy
}

// Supposed is a world for who has neither key nor content: until an edit, every record that
// can be compared at all is true, and every key that is needed is there.
type Supposed struct {
	// Workloads are as they were given, with records of this world.
	Workloads []Workload
	// Ring is of this world alone.
	Ring     *checksum.Ring
	contents map[rollout.SourceRef]*checksum.Content
	seen     func(rollout.SourceRef) Seen
	keys     map[rollout.SourceRef][]string
}

// Suppose makes a world of workloads, and of what was seen of the sources that they use.
func Suppose(workloads []Workload, seen func(rollout.SourceRef) Seen) (*Supposed, error) {
	key, err := checksum.NewKey(make([]byte, checksum.KeySize)) // no secret: nothing but this world is told by it
	if err != nil {
		return nil, err
	}
	s := &Supposed{
		Workloads: slices.Clone(workloads), Ring: checksum.NewRing(key), seen: seen,
		contents: map[rollout.SourceRef]*checksum.Content{}, keys: map[rollout.SourceRef][]string{},
	}
	for i := range workloads {
		w := &workloads[i]
		for j := range w.References {
			r := &w.References[j]
			at := rollout.SourceRef{Namespace: w.Ref.Namespace, Source: r.Source}
			s.keys[at] = append(append(s.keys[at], r.Keys...), r.RequiredKeys...)
		}
	}
	for i := range s.Workloads {
		s.Workloads[i].Records = s.records(&s.Workloads[i])
	}
	return s, nil
}

// records are those of a workload, as they would be in this world.
func (s *Supposed) records(w *Workload) checksum.Records {
	supposed := w.Records
	supposed.Declined = "" // an edit is supposed to be news to everybody
	supposed.Stamps, supposed.Baseline = maps.Clone(supposed.Stamps), maps.Clone(supposed.Baseline)
	for _, selection := range checksum.Selections(w.References, w.Policy) {
		at := rollout.SourceRef{Namespace: w.Ref.Namespace, Source: selection.Source}
		content := s.Content(at)
		if content == nil { // the record is of what it held before it was deleted
			content = s.of(at, "deleted", nil)
		}
		if value, recorded := supposed.Baseline[selection.Source]; recorded {
			supposed.Baseline[selection.Source] = s.Ring.Suppose(at.Namespace, selection, value, content)
		}
		key := checksum.StampKey(selection.Source)
		if value, stamped := supposed.Stamps[key]; stamped {
			supposed.Stamps[key] = s.Ring.Suppose(at.Namespace, selection, value, content)
		}
	}
	return supposed
}

// Content is what a source is supposed to hold before the edits, nil when it is missing.
func (s *Supposed) Content(at rollout.SourceRef) *checksum.Content {
	content, known := s.contents[at]
	if known {
		return content
	}
	if seen := s.seen(at); !seen.Missing {
		if content = seen.Content; content == nil {
			content = s.of(at, "now", seen.Policy)
		}
	}
	s.contents[at] = content
	return content
}

// anyKey stands for the keys of a source that no workload names: no source has it.
const anyKey = "*"

// of makes a content of all keys that are named, and of one for the others.
func (s *Supposed) of(at rollout.SourceRef, holds string, policy *checksum.SourcePolicy) *checksum.Content {
	content := &checksum.Content{Policy: policy}
	names := append(slices.Clone(s.keys[at]), anyKey)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		content.Entries = append(content.Entries, entry(name, holds))
	}
	return content
}

func entry(name, holds string) checksum.Entry {
	return checksum.Entry{Name: name, Sum: sha256.Sum256([]byte(holds + " " + name))}
}

// Changed is the edit of some keys of a source, those that it does not have yet included;
// without any, of all.
func (s *Supposed) Changed(at rollout.SourceRef, keys ...string) Edit {
	was := s.Content(at)
	if was == nil {
		return s.Made(at)
	}
	is := &checksum.Content{Policy: was.Policy}
	for _, e := range was.Entries {
		if len(keys) == 0 || slices.Contains(keys, e.Name) {
			e.Sum = entry(e.Name, "changed").Sum
		}
		is.Entries = append(is.Entries, e)
	}
	for _, key := range keys {
		if _, has := is.Entry(key); !has {
			is.Entries = append(is.Entries, entry(key, "changed"))
			slices.SortFunc(is.Entries, func(a, b checksum.Entry) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	return Edit{At: at, Was: was, Is: is}
}

// Made is a source that does not exist being made, with every key that is named.
func (s *Supposed) Made(at rollout.SourceRef) Edit {
	return Edit{At: at, Was: nil, Is: s.of(at, "now", s.seen(at).Policy)}
}

// Deleted is the deletion of a source.
func (s *Supposed) Deleted(at rollout.SourceRef) Edit { return Edit{At: at, Was: s.Content(at)} }
