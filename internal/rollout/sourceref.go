package rollout

import (
	"cmp"

	"github.com/configstamp/configstamp/checksum"
)

// SourceRef is a source in its namespace.
type SourceRef struct {
	Namespace string
	Source    checksum.Source
}

// Compare orders sources: by namespace, kind and name.
func (p SourceRef) Compare(other SourceRef) int {
	return cmp.Or(cmp.Compare(p.Namespace, other.Namespace), p.Source.Compare(other.Source))
}
