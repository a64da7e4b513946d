package checksum

import (
	"maps"
	"slices"
	"strings"
)

// Two installations may serve one Namespace that names neither. Each other's values look to them
// as if their key was lost, and whose webhook is called last has its way.

// IsOwn reports whether a user is a service account in an installation's namespace; in "" nobody is.
func IsOwn(user, installation string) bool {
	return installation != "" && strings.HasPrefix(user, "system:serviceaccount:"+installation+":")
}

// answeredByAnother reports whether a rolling re-admission brings other stamps than are on record,
// under a key that we do not hold. To take another webhook's answer back would lose what has changed.
func (a *Admission) answeredByAnother(ring *Ring) bool {
	return !a.Own && !maps.Equal(a.Sent.Stamps, a.Held.Stamps) && slices.ContainsFunc(a.Selections, func(s Selection) bool {
		value, _ := a.Held.Of(s.Source)
		_, unknown := ring.UnknownKey(value)
		return unknown
	})
}
