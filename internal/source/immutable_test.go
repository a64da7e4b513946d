package source

import (
	"runtime"
	"testing"
	"weak"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configstamp/configstamp/checksum"
)

// What an immutable source held that is gone is not kept, however much that was: other content
// of its name is told from it all the same.
func TestImmutableKeepsNoContent(t *testing.T) {
	known, at := newImmutable(), types.NamespacedName{Namespace: "shop", Name: "c"}
	holding := func(sum byte) *object {
		return &object{immutable: true, held: held{content: &checksum.Content{Entries: []checksum.Entry{{Name: "k", Sum: [32]byte{sum}}}}}}
	}
	one := holding(1)
	known.put(at, one)
	known.gone(at, one.content)
	kept := weak.Make(one.content)
	one = nil
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the content is still there")
	}
	if known.put(at, holding(1)) || !known.put(at, holding(2)) {
		t.Error("what it held is not told from other content")
	}
}
