package source

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow"
	"github.com/configstamp/configstamp/internal/reason"
)

// sink keeps what one watch brings: all sources of one kind, of one namespace or of
// all.
//
// What it holds never goes back. A watch delivers the events of one resource in
// order, and what it began with holds everything up to newest, so an event that
// is not newer than that, or than the event before, repeats something known,
// deletions included; a per-source comparison would let such an event bring
// back a source that was deleted since. Replace is the exception: the Reflector
// asks for it at a consistent read, so it is the truth even when
// resourceVersions went back because etcd was restored from a snapshot.
type sink struct {
	follow.Store[*object]
	kind    checksum.Kind
	changed onChange

	mu      sync.RWMutex // for what follows; only the Reflector writes
	sources map[string]map[string]held
	count   int
	newest  string // resourceVersion
	// findings has an entry only for the few sources with a finding.
	findings  map[types.NamespacedName][]checksum.Finding
	immutable immutable
	// snapshots are no sources.
	snapshots       snapshotCache
	snapshotChanged func(namespace, name string)
}

func newSink(kind checksum.Kind, clock clock.PassiveClock, changed onChange) *sink {
	s := &sink{kind: kind, changed: changed, sources: map[string]map[string]held{}, findings: map[types.NamespacedName][]checksum.Finding{}, immutable: newImmutable(), snapshots: snapshotCache{}}
	s.Resource, s.Clock, s.Event, s.All = resourceOf(kind), clock, s.event, s.all
	if kind == checksum.Secret {
		s.Selector = fields.ParseSelectorOrDie(notHelm)
	}
	return s
}

// notHelm leaves out Helm's release Secrets, on the server.
const notHelm = "type!=" + checksum.HelmReleaseType

func (s *sink) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}

func (s *sink) countIn(namespace string) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.sources[namespace]) + len(s.snapshots[namespace])
}

func (s *sink) get(namespace, name string) (Record, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h, ok := s.sources[namespace][name]
	return h.record(), ok
}

func (s *sink) names(namespace string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.sources[namespace]))
}

// namespaces are those in which there is a source of a name.
func (s *sink) namespaces(name string) (namespaces []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for namespace, byName := range s.sources {
		if _, had := byName[name]; had {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// found returns the findings of sources.
func (s *sink) found() map[types.NamespacedName][]checksum.Finding {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.findings)
}

func (s *sink) event(o *object, deleted bool) {
	was, news, snapshots := s.apply(o, deleted)
	if news && s.Filled() {
		s.changed(o.namespace, s.source(o.name), was)
	}
	if snapshots && s.snapshotChanged != nil {
		s.snapshotChanged(o.namespace, o.name)
	}
}

// apply reports whether anything changed that callers are notified of, of sources and of
// snapshots, and what the source held before.
func (s *sink) apply(o *object, deleted bool) (was *checksum.Content, news, snapshots bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known(o.resourceVersion, s.newest) {
		return nil, false, false
	}
	s.newest = o.resourceVersion
	snapshots = s.snapshots.put(o, deleted)
	old, had := s.sources[o.namespace][o.name]
	if deleted || o.snapshot != nil {
		s.immutable.gone(types.NamespacedName{Namespace: o.namespace, Name: o.name}, old.content)
		s.remove(o.namespace, o.name)
		return old.content, had, snapshots
	}
	o.recall(old)
	if o.content.Equal(old.content) {
		o.content = old.content // let the new copy go
	}
	s.put(o)
	return old.content, !had || !old.record().sameFor(o.record()), snapshots
}

// recall keeps when the resume of a source was first seen, as the old object tells it.
func (o *object) recall(old held) {
	if policy := o.content.Policy; policy != nil && old.content != nil {
		policy.Recall(old.content.Policy)
	}
}

// known reports whether an event of version brings nothing that newest does not
// already hold. Versions that cannot be compared are new.
func known(version, newest string) bool {
	order, err := resourceversion.CompareResourceVersion(version, newest)
	return err == nil && order <= 0
}

func (s *sink) put(o *object) {
	byName := s.sources[o.namespace]
	if byName == nil {
		byName = map[string]held{}
		s.sources[o.namespace] = byName
	}
	if _, had := byName[o.name]; !had {
		s.count++
	}
	byName[o.name] = o.held
	at := types.NamespacedName{Namespace: o.namespace, Name: o.name}
	if s.immutable.put(at, o) {
		o.findings = append(slices.Clip(o.findings), checksum.Finding{Reason: reason.MadeAnew})
	}
	if found := slices.Concat(o.findings, o.content.Policy.Findings(s.source(o.name))); len(found) > 0 {
		s.findings[at] = found
	} else {
		delete(s.findings, at)
	}
}

func (s *sink) remove(namespace, name string) {
	byName := s.sources[namespace]
	if _, had := byName[name]; !had {
		return
	}
	s.count--
	delete(byName, name)
	delete(s.findings, types.NamespacedName{Namespace: namespace, Name: name})
	if len(byName) == 0 {
		delete(s.sources, namespace)
	}
}

// all takes everything that there is, as of a resourceVersion.
func (s *sink) all(objects []*object, resourceVersion string) {
	next := newSink(s.kind, s.Clock, nil)
	s.replaced(objects)
	next.immutable.were = maps.Clone(s.immutable.were)
	for _, o := range objects {
		if next.snapshots.put(o, false); o.snapshot != nil {
			continue
		}
		o.recall(s.sources[o.namespace][o.name]) // without a lock, as in differences
		next.put(o)
	}
	moved := s.snapshots.differing(next.snapshots)
	var changes []change
	if s.Filled() {
		changes = s.differences(next)
	}
	s.mu.Lock()
	s.sources, s.count, s.newest, s.findings = next.sources, next.count, resourceVersion, next.findings
	s.snapshots, s.immutable = next.snapshots, next.immutable
	s.mu.Unlock()
	for _, at := range moved {
		if s.snapshotChanged != nil {
			s.snapshotChanged(at.Namespace, at.Name)
		}
	}
	for _, c := range changes {
		s.changed(c.namespace, s.source(c.name), c.was)
	}
}

// replaced notes which immutable sources are gone, or made anew, when everything is listed anew.
func (s *sink) replaced(objects []*object) {
	if len(s.immutable.are) == 0 {
		return
	}
	now := make(map[types.NamespacedName]*checksum.Content, len(s.immutable.are))
	for _, o := range objects {
		if at := (types.NamespacedName{Namespace: o.namespace, Name: o.name}); s.immutable.are[at] {
			now[at] = o.content
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range maps.Clone(s.immutable.are) {
		if was := s.sources[at.Namespace][at.Name].content; !was.SameEntries(now[at]) {
			s.immutable.gone(at, was)
		}
	}
}

type change struct {
	namespace, name string
	was             *checksum.Content
}

// differences lists what callers are notified of when next replaces s. It reads
// without a lock, as only the Reflector, which calls it, writes.
func (s *sink) differences(next *sink) []change {
	var changes []change
	for namespace, byName := range s.sources {
		for name, old := range byName {
			now, still := next.sources[namespace][name]
			if !still || !old.record().sameFor(now.record()) {
				changes = append(changes, change{namespace, name, old.content})
			}
		}
	}
	for namespace, byName := range next.sources {
		for name := range byName {
			if _, had := s.sources[namespace][name]; !had {
				changes = append(changes, change{namespace, name, nil})
			}
		}
	}
	return changes
}

func (s *sink) source(name string) checksum.Source {
	return checksum.Source{Kind: s.kind, Name: name}
}
