package e2e

import "sync"

// set remembers what it has seen, for hooks that are called from everywhere.
type set struct {
	mu   sync.Mutex
	seen map[string]bool
}

func newSet() *set { return &set{seen: map[string]bool{}} }

// add reports whether an item is new.
func (s *set) add(item string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[item] {
		return false
	}
	s.seen[item] = true
	return true
}
