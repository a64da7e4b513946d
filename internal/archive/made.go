package archive

import "time"

// MadeAt is when a snapshot was made, as it says itself; zero if that is not known.
func (a *Archive) MadeAt(namespace, name string) time.Time {
	s, known := a.remembered(namespace, name)
	if !known || s == nil {
		return time.Time{}
	}
	made, err := time.Parse(time.RFC3339, s.Made)
	if err != nil {
		return time.Time{}
	}
	return made
}
