package namespace

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/configstamp/configstamp/internal/follow"
)

// sink takes what a Reflector brings (cache.ReflectorStore).
type sink struct {
	changed  func(namespace string)
	full     atomic.Bool
	progress follow.Progress

	mu      sync.RWMutex
	records map[string]Record
}

func newSink(changed func(string)) *sink {
	return &sink{changed: changed, records: map[string]Record{}}
}

func (s *sink) filled() bool { return s.full.Load() }

func (s *sink) get(namespace string) (Record, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	record, known := s.records[namespace]
	return record, known
}

// put reports whether a Namespace says something else than before.
func (s *sink) put(n *named) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.records[n.Name]
	s.records[n.Name] = n.Record
	return !known || was.OptedIn != n.OptedIn || was.Ending != n.Ending || !maps.Equal(was.Settings, n.Settings)
}

// Add implements cache.ReflectorStore.
func (s *sink) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *sink) Update(obj any) error {
	s.progressed()
	n, err := namedOf(obj)
	if err == nil && s.put(n) && s.filled() {
		s.changed(n.Name)
	}
	return err
}

// Delete implements cache.ReflectorStore.
func (s *sink) Delete(obj any) error {
	s.progressed()
	n, err := namedOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, n.Name)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *sink) Replace(list []any, _ string) error {
	s.progressed()
	var changed []string
	listed := make(map[string]bool, len(list))
	for _, obj := range list {
		n, err := namedOf(obj)
		if err != nil {
			return err
		}
		listed[n.Name] = true
		if s.put(n) {
			changed = append(changed, n.Name)
		}
	}
	s.mu.Lock()
	maps.DeleteFunc(s.records, func(name string, _ Record) bool { return !listed[name] })
	s.mu.Unlock()
	if s.full.Swap(true) {
		for _, name := range changed {
			s.changed(name)
		}
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *sink) Bookmark(string) error {
	s.progressed()
	return nil
}

func (s *sink) progressed() { s.progress.Made(time.Now()) }

// Resync implements cache.ReflectorStore; there is nothing to do.
func (s *sink) Resync() error { return nil }

func namedOf(obj any) (*named, error) {
	n, ok := obj.(*named)
	if !ok {
		return nil, fmt.Errorf("watching Namespaces: unexpected %T", obj)
	}
	return n, nil
}
