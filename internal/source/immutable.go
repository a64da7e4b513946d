package source

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
)

// immutable holds which sources are immutable, and what those held that are gone: a kubelet
// never reads one of them again while a pod on its node uses it, also when another object has
// its name (kubernetes/pkg/kubelet/util/manager). It does not outlive the process.
type immutable struct {
	are map[types.NamespacedName]bool
	// were is what the first of its name held that is gone.
	were map[types.NamespacedName]checksum.Fingerprint
}

// mostGone bounds what is known of those that are gone.
const mostGone = 1024

func newImmutable() immutable {
	return immutable{are: map[types.NamespacedName]bool{}, were: map[types.NamespacedName]checksum.Fingerprint{}}
}

// put notes a source, and reports whether it has taken the name of one that held something else.
func (i *immutable) put(at types.NamespacedName, o *object) (anew bool) {
	if delete(i.are, at); o.immutable {
		i.are[at] = true
	}
	was, known := i.were[at]
	return known && was != o.content.Fingerprint()
}

// gone notes that a source is gone, or has been made anew, and what it held.
func (i *immutable) gone(at types.NamespacedName, held *checksum.Content) {
	if _, known := i.were[at]; !known && i.are[at] {
		if len(i.were) >= mostGone {
			clear(i.were) // then nothing is reported
		}
		i.were[at] = held.Fingerprint()
	}
	delete(i.are, at)
}
