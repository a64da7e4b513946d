package namespace

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow"
)

// sink keeps what the watch of Namespaces brings.
type sink struct {
	follow.Store[*named]
	changed func(namespace string)
	full    atomic.Bool

	mu    sync.RWMutex
	known map[string]checksum.Namespace
}

func newSink(changed func(string)) *sink {
	s := &sink{changed: changed, known: map[string]checksum.Namespace{}}
	s.Resource, s.Event, s.All = "namespaces", s.event, s.all
	return s
}

func (s *sink) filled() bool { return s.full.Load() }

func (s *sink) get(namespace string) (checksum.Namespace, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, known := s.known[namespace]
	return found, known
}

func (s *sink) each(yield func(name string, says checksum.Namespace)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, says := range s.known {
		yield(name, says)
	}
}

// put reports whether a Namespace says something else than before.
func (s *sink) put(n *named) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.known[n.Name]
	s.known[n.Name] = n.says
	return !known || was.OptedIn != n.says.OptedIn || was.Ending != n.says.Ending || !maps.Equal(was.Settings, n.says.Settings)
}

func (s *sink) event(n *named, deleted bool) {
	if !deleted {
		if s.put(n) && s.filled() {
			s.changed(n.Name)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, n.Name)
}

func (s *sink) all(list []*named, _ string) {
	var changed []string
	listed := make(map[string]bool, len(list))
	for _, n := range list {
		listed[n.Name] = true
		if s.put(n) {
			changed = append(changed, n.Name)
		}
	}
	s.mu.Lock()
	maps.DeleteFunc(s.known, func(name string, _ checksum.Namespace) bool { return !listed[name] })
	s.mu.Unlock()
	if s.full.Swap(true) {
		for _, name := range changed {
			s.changed(name)
		}
	}
}
