package pinning

import (
	"cmp"
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
	// NotPinned are references that a pin is for, and that keep the name of their source.
	NotPinned []NotPinned
}

// Change gives a field of a Pod another value.
type Change struct {
	// Path is a JSON pointer (RFC 6901) to a field that exists.
	Path  string
	Value any
}

// NotPinned is a reference that keeps the name of its source. One for another use than the
// pin's is none.
type NotPinned struct {
	Source checksum.Source
	// Path is where it names the source, as a JSON pointer; "" for all places.
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
	// OtherUse: its container mounts a volume that serves two uses, and the pin is for one.
	OtherUse
	// LacksKey: a container that reads it names a key that the snapshot lacks.
	LacksKey
	// TooMany: the Pod reads ConfigMaps in so many places that they are not looked at.
	TooMany
)

// Pin decides for each reference of a Pod that a pin is for whether it names the snapshot.
// content is what the snapshot of a source's pin holds, nil if there is none that can be
// used.
//
// One container reads one content of a source: if one of its references cannot name the
// snapshot, none does, nor does a volume that it mounts, nor then what else reads that
// volume. References that name the snapshot already are judged again, unless it cannot be
// had now: they were judged when it could.
func Pin(pod *corev1.PodSpec, pins checksum.Pins, content func(checksum.Source) *checksum.Content) Result {
	result := Result{Pinned: map[checksum.Source]string{}}
	if len(pins) == 0 {
		return result
	}
	places, named, left := placesIn(pod), map[string][]int{}, mostReads
	for i := range places {
		if len(places[i].readers) > 0 {
			named[places[i].name] = append(named[places[i].name], i)
		}
	}
	for _, source := range slices.SortedFunc(maps.Keys(pins), checksum.Source.Compare) {
		if source.Kind != checksum.ConfigMap {
			continue
		}
		pin := pins[source]
		at := slices.Concat(named[source.Name], named[pin.Snapshot])
		slices.Sort(at)
		of := make([]*place, 0, len(at))
		for _, i := range at {
			of = append(of, &places[i])
			left -= len(places[i].readers)
		}
		switch {
		case len(of) == 0:
		case left < 0:
			result.NotPinned = append(result.NotPinned, NotPinned{Source: source, Why: TooMany})
		default:
			result.judge(source, pin, of, content(source))
		}
	}
	return result
}

// mostReads is in how many places containers may read ConfigMaps, all together. Few Pods have
// fifty; but N sources in a volume that is mounted M times are N times M.
const mostReads = 100_000

// judge decides for all references to one source.
func (r *Result) judge(source checksum.Source, pin checksum.Pin, places []*place, content *checksum.Content) {
	excluded := exclude(places, pin.Uses, content)
	for _, p := range places {
		why, pinned := cause{}, false
		switch {
		case content == nil:
			pinned = p.name == pin.Snapshot
		case p.name == pin.Snapshot && p.optional != nil: // we may have made it required, and the source may be gone
			pinned = true
		case !p.served(pin.Uses):
			continue
		default:
			why, pinned = excluded.among(p.readers)
		}
		name := source.Name
		if pinned {
			name = pin.Snapshot
			r.Pinned[source] = name
		} else {
			r.NotPinned = append(r.NotPinned, NotPinned{Source: source, Path: p.path, Why: why.why, Key: why.key})
		}
		if p.name != name {
			r.Changes = append(r.Changes, Change{p.path + "/name", name})
		}
		if pinned && p.mustExist(content) {
			r.Changes = append(r.Changes, Change{p.path + "/optional", false})
		}
	}
}

// cause is why a container keeps the source's name.
type cause struct {
	why Why
	key string
}

// causes are those of containers, by name.
type causes struct {
	of    map[string]cause
	order []string // in which they were found
}

// exclude finds the containers that keep the source's name in all their references, and
// those that share a volume with one of them, and so on.
func exclude(places []*place, uses []checksum.Use, content *checksum.Content) causes {
	excluded := causes{of: map[string]cause{}}
	if content == nil {
		return excluded
	}
	read := map[string][]*place{} // by container
	for _, p := range places {
		key, served := p.lacks(content), p.served(uses)
		for i := range p.readers {
			if key := cmp.Or(key, p.lacksFor(&p.readers[i], content)); key != "" {
				excluded.add(p.readers[i].container, cause{LacksKey, key})
			}
		}
		for _, reader := range p.readers {
			if served && !slices.Contains(uses, reader.use) {
				excluded.add(reader.container, cause{why: OtherUse})
			}
			if served {
				read[reader.container] = append(read[reader.container], p)
			}
		}
	}
	shared := map[*place]bool{}
	for i := 0; i < len(excluded.order); i++ { // which grows
		container := excluded.order[i]
		for _, p := range read[container] {
			if shared[p] {
				continue
			}
			shared[p] = true
			for _, reader := range p.readers {
				excluded.add(reader.container, excluded.of[container])
			}
		}
	}
	return excluded
}

// add keeps the first cause.
func (c *causes) add(container string, why cause) {
	if _, known := c.of[container]; !known {
		c.of[container] = why
		c.order = append(c.order, container)
	}
}

// among is the cause of the first reader that has one, or true when none has.
func (c *causes) among(readers []reader) (why cause, free bool) {
	for _, reader := range readers {
		if why, excluded := c.of[reader.container]; excluded {
			return why, false
		}
	}
	return cause{}, true
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
