package podtruth

import "time"

// Memory is what a process that watches a source has seen of its content. The zero Memory has
// seen nothing.
type Memory struct {
	// Since it has watched without a gap, and Still it has seen what the source holds now.
	Since, Still time.Time
	// Written is when that was written, as managedFields told when it was first seen: what is
	// written later changes annotations alone. Zero: they tell nothing of it.
	Written time.Time
}

// Begin is the memory of who sees a source for the first time, or again after a gap in which
// any edit may have come and gone.
func Begin(now, written time.Time) Memory {
	return Memory{Since: now, Still: now, Written: written}
}

// Changed is the memory after other content was seen. A time that is not of this edit, as when
// a key was removed, tells nothing.
func (m Memory) Changed(now, written time.Time) Memory {
	m.Still = now
	if written.Before(now.Add(-Heard-Skew-second)) || !written.After(m.Written) {
		written = time.Time{}
	}
	m.Written = written
	return m
}
