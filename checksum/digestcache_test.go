package checksum_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// Digests that were made before are remembered with the content, and are the
// same as those of an equal content that remembers none.
func TestADigestIsMadeOnceForEachUse(t *testing.T) {
	content := func() *checksum.Content { return text("a", "1", "b", "2") }
	remembering := content()
	rings := []*checksum.Ring{checksum.NewRing(key(1)), checksum.NewRing(key(2))}
	var selections []checksum.Selection
	for _, source := range []checksum.Source{message, password} {
		selections = append(selections, checksum.Selection{Source: source, All: true},
			checksum.Selection{Source: source, Keys: []string{"a"}}, checksum.Selection{Source: source, Keys: []string{"a", "b"}}, checksum.Selection{Source: source})
	}
	seen := map[string]string{}
	for range 2 {
		for r, ring := range rings {
			for i, s := range selections {
				for _, namespace := range []string{"shop", "bank"} {
					use := fmt.Sprint(r, i, namespace)
					value := ring.Digest(namespace, s, remembering)
					if want := ring.Digest(namespace, s, content()); value != want {
						t.Errorf("%s is %s, want %s", use, value, want)
					}
					if other, ok := seen[value]; ok && other != use {
						t.Errorf("%s and %s have one digest", use, other)
					}
					seen[value] = use
				}
			}
		}
	}
	if allocations := testing.AllocsPerRun(10, func() { rings[0].Digest("shop", selections[0], remembering) }); allocations > 0 {
		t.Errorf("a digest that was made before takes %v allocations", allocations)
	}
}

func TestDigestsAreMadeTogether(t *testing.T) {
	content, ring := text("a", "1"), checksum.NewRing(key(1))
	var working sync.WaitGroup
	for i := range 8 {
		working.Go(func() {
			for n := range 200 {
				s := checksum.Selection{Source: message, Keys: []string{fmt.Sprint("key-", (i+n)%6)}}
				if ring.Digest(namespace, s, content) != ring.Digest(namespace, s, text("a", "1")) {
					t.Error("a digest of another selection")
				}
			}
		})
	}
	working.Wait()
}
