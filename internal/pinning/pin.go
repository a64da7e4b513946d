package pinning

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// Result is what becomes of a Pod's references.
type Result struct {
	// Changes are the fields to replace, in the order of the Pod's spec, for one source
	// after the other.
	Changes []Change
	// Pinned is each source that a reference reads from a snapshot now, and its snapshot.
	Pinned map[checksum.Source]string
	// NotPinned are references that a pin is for and that keep the name of their source.
	NotPinned []NotPinned
}

// Change gives a field of a Pod another value.
type Change struct {
	// Path is a JSON pointer (RFC 6901) to a field that exists.
	Path  string
	Value any
}

// NotPinned is a reference that keeps the name of its source.
type NotPinned struct {
	Source checksum.Source
	// Path is where it names the source, as a JSON pointer.
	Path string
	Why  Why
	// Key is what the snapshot lacks, where that is why.
	Key string
}

// Why says why a reference is not pinned.
type Why int

// The reasons.
const (
	// NoSnapshot: there is none, or it could not be verified.
	NoSnapshot Why = iota
	// OtherUse: a volume serves a use that the pin is not for.
	OtherUse
	// LacksKey: a container that reads it names a key that the snapshot lacks.
	LacksKey
)

// Pin decides for each reference of a Pod that a pin is for whether it names the snapshot.
// content is what the snapshot of a source's pin holds, nil if there is none that can be
// used.
//
// One container reads one content: if a source's snapshot lacks a key that a container
// names, all references of that container keep the source's name, and so do the volumes
// that it mounts. References that name the snapshot already are judged again, unless it
// cannot be had now: they were judged when it could.
func Pin(pod *corev1.PodSpec, pins checksum.Pins, content func(checksum.Source) *checksum.Content) Result {
	result := Result{Pinned: map[checksum.Source]string{}}
	if len(pins) == 0 {
		return result
	}
	places := placesIn(pod)
	for _, source := range slices.SortedFunc(maps.Keys(pins), checksum.Source.Compare) {
		if source.Kind != checksum.ConfigMap {
			continue
		}
		pin := pins[source]
		var of []*place
		for i := range places {
			if name := places[i].name; len(places[i].readers) > 0 && (name == source.Name || name == pin.Snapshot) {
				of = append(of, &places[i])
			}
		}
		if len(of) > 0 {
			result.judge(source, pin, of, content(source))
		}
	}
	return result
}

// judge decides for all references to one source.
func (r *Result) judge(source checksum.Source, pin checksum.Pin, places []*place, content *checksum.Content) {
	lacking := lacking(places, content)
	for _, p := range places {
		why, key := NoSnapshot, ""
		var pinned bool
		switch {
		case content == nil:
			pinned = p.name == pin.Snapshot
		case p.name == pin.Snapshot && p.optional != nil: // we may have made it required, and the source may be gone
			pinned = true
		case !p.within(pin.Uses):
			why = OtherUse
		default:
			why, key = LacksKey, p.lackedBy(lacking)
			pinned = key == ""
		}
		name := source.Name
		if pinned {
			name = pin.Snapshot
			r.Pinned[source] = name
		} else {
			r.NotPinned = append(r.NotPinned, NotPinned{Source: source, Path: p.path, Why: why, Key: key})
		}
		if p.name != name {
			r.Changes = append(r.Changes, Change{p.path + "/name", name})
		}
		if pinned && p.mustExist(content) {
			r.Changes = append(r.Changes, Change{p.path + "/optional", false})
		}
	}
}

// lacking is the first key that a container names and the snapshot lacks, by container.
func lacking(places []*place, content *checksum.Content) map[string]string {
	keys := map[string]string{}
	if content == nil {
		return keys
	}
	for _, p := range places {
		for _, reader := range p.readers {
			if key := p.lacks(content, reader.container); key != "" && keys[reader.container] == "" {
				keys[reader.container] = key
			}
		}
	}
	return keys
}

// lackedBy is the key that the first of a place's readers lacks, "" when none does.
func (p *place) lackedBy(lacking map[string]string) string {
	for _, reader := range p.readers {
		if key := lacking[reader.container]; key != "" {
			return key
		}
	}
	return ""
}

// mustExist reports whether a pinned place that is optional has to become required. The
// kubelet goes on without an optional ConfigMap that it does not find, and it may not see
// a snapshot that was made a moment ago: the container would start without it. A variable
// whose key the snapshot lacks is unset either way.
func (p *place) mustExist(content *checksum.Content) bool {
	if !isTrue(p.optional) || content == nil {
		return false
	}
	if p.volume != "" {
		return true
	}
	for _, key := range p.keys {
		if entry, ok := content.Entry(key); !ok || entry.Binary {
			return false
		}
	}
	return true
}
