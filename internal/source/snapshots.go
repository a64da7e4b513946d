package source

import (
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/snapshot"
)

// snapshotCache holds the snapshots of one watch, by namespace and name.
type snapshotCache map[string]map[string]*snapshot.Snapshot

// put takes an object that was made, changed or deleted, and reports whether it is, or
// was, a snapshot.
func (s snapshotCache) put(o *object, deleted bool) (concerned bool) {
	of := s[o.namespace]
	old := of[o.name]
	if deleted || o.snapshot == nil {
		delete(of, o.name)
		if old != nil && len(of) == 0 {
			delete(s, o.namespace)
		}
		return old != nil
	}
	if of == nil {
		of = map[string]*snapshot.Snapshot{}
		s[o.namespace] = of
	}
	if old != nil && old.Content.Equal(o.snapshot.Content) {
		o.snapshot.Content = old.Content // let the new copy go
	}
	of[o.name] = o.snapshot
	return true
}

// differing lists the snapshots that are not the same, of two states of the cache.
func (s snapshotCache) differing(next snapshotCache) (found []types.NamespacedName) {
	for at, old := range s.each() {
		if now := next[at.Namespace][at.Name]; now == nil || now.ResourceVersion != old.ResourceVersion || now.UID != old.UID {
			found = append(found, at)
		}
	}
	for at := range next.each() {
		if s[at.Namespace][at.Name] == nil {
			found = append(found, at)
		}
	}
	return found
}

func (s snapshotCache) each() iter.Seq2[types.NamespacedName, *snapshot.Snapshot] {
	return func(yield func(types.NamespacedName, *snapshot.Snapshot) bool) {
		for namespace, of := range s {
			for name, one := range of {
				if !yield(types.NamespacedName{Namespace: namespace, Name: name}, one) {
					return
				}
			}
		}
	}
}

// snapshot makes a ConfigMap that claims to be a snapshot an object that is no source.
func (c *condenser) snapshot(meta *metav1.ObjectMeta, s *snapshot.Snapshot) *object {
	s.Namespace, s.Name = c.names.intern(meta.Namespace), meta.Name
	s.UID, s.ResourceVersion, s.Created = meta.UID, meta.ResourceVersion, meta.CreationTimestamp.Time
	s.Made = meta.Annotations[checksum.SnapshotMadeAnnotation]
	return &object{namespace: s.Namespace, name: s.Name, snapshot: s, held: held{content: c.shared(s.Content), resourceVersion: s.ResourceVersion}}
}

// OnSnapshot has call called, as OnChange does, whenever a snapshot appears, changes or
// disappears, at the initial fill too. It must be called before Run.
func (s *Store) OnSnapshot(call func(namespace, name string)) {
	s.onSnapshot = append(s.onSnapshot, call)
}

func (s *Store) snapshotChanged(namespace, name string) {
	for _, call := range s.onSnapshot {
		call(namespace, name)
	}
}

// Snapshot is what is held of a snapshot; false when there is none, as far as is known.
// That it is one of ours is for the caller to verify.
func (s *Store) Snapshot(namespace, name string) (snapshot.Snapshot, bool) {
	sink, watched := s.cacheOf(namespace, checksum.ConfigMap).(*sink)
	if !watched {
		return snapshot.Snapshot{}, false
	}
	sink.mu.RLock()
	defer sink.mu.RUnlock()
	if found := sink.snapshots[namespace][name]; found != nil {
		return *found, true
	}
	return snapshot.Snapshot{}, false
}

// Snapshots are those of a namespace, by name.
func (s *Store) Snapshots(namespace string) (all []snapshot.Snapshot) {
	sink, watched := s.cacheOf(namespace, checksum.ConfigMap).(*sink)
	if !watched {
		return nil
	}
	sink.mu.RLock()
	defer sink.mu.RUnlock()
	of := sink.snapshots[namespace]
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, *of[name])
	}
	return all
}

// SnapshotNamespaces are the namespaces in which there are snapshots, sorted.
func (s *Store) SnapshotNamespaces() (namespaces []string) {
	for key, sink := range s.sinks {
		if key.kind == checksum.ConfigMap {
			sink.mu.RLock()
			namespaces = slices.AppendSeq(namespaces, maps.Keys(sink.snapshots))
			sink.mu.RUnlock()
		}
	}
	slices.Sort(namespaces)
	return namespaces
}

// SnapshotTotals are how many snapshots there are, and how many bytes they hold.
func (s *Store) SnapshotTotals() (count, bytes int) {
	for _, sink := range s.sinks {
		sink.mu.RLock()
		for _, one := range sink.snapshots.each() {
			count++
			bytes += one.Bytes
		}
		sink.mu.RUnlock()
	}
	return count, bytes
}
