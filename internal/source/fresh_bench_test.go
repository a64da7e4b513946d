package source

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// BenchmarkFresh proves ten sources that have not changed: go test ./internal/source -run '^$' -bench Fresh -benchmem
// The fake API server's work is in it.
func BenchmarkFresh(b *testing.B) {
	server := fakeapi.New(b)
	sources := many(server, 10)
	store := stale(b, server)
	checker := NewChecker(store, CheckerOptions{Timeout: 5 * time.Second})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := checker.Fresh(b.Context(), "shop", sources, nil); err != nil {
			b.Fatal(err)
		}
	}
}
