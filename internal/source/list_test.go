package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// TestManySourcesAreProvenByOneList: and those alone are read of which memory is behind.
func TestManySourcesAreProvenByOneList(t *testing.T) {
	for name, c := range map[string]struct {
		wanted, others int
		edit           func(server *fakeapi.Server)
		lists, reads   int
	}{
		"few":                     {wanted: listFrom - 1, reads: listFrom - 1},
		"many":                    {wanted: listFrom, lists: 2},
		"very many, page by page": {wanted: 1200, lists: 4},
		"among so many that a list would cost more": {wanted: listFrom, others: listFrom * listWithin, reads: listFrom},
		"a list that is refused":                    {wanted: listFrom, edit: func(s *fakeapi.Server) { s.Refuse("/configmaps$", fakeapi.ErrForbidden) }, lists: 1, reads: listFrom},
		"one has changed":                           {wanted: 100, edit: func(s *fakeapi.Server) { s.Put("configmaps", configMap("shop", "web-7", map[string]string{"a": "2"})) }, lists: 2, reads: 1},
		"one is gone":                               {wanted: 100, edit: func(s *fakeapi.Server) { s.Delete("configmaps", "shop", "web-7") }, lists: 2, reads: 1},
		"one was made anew": {wanted: 100, edit: func(s *fakeapi.Server) {
			s.Delete("configmaps", "shop", "web-7")
			s.Put("configmaps", configMap("shop", "web-7", map[string]string{"a": "3"}))
		}, lists: 2, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New(t)
			wanted := many(server, c.wanted)
			for i := range c.others {
				server.Put("configmaps", configMap("shop", fmt.Sprint("other-", i), nil))
			}
			store := stale(t, server)
			if c.edit != nil {
				c.edit(server)
			}
			found, err := NewChecker(store, CheckerOptions{Timeout: time.Minute}).Fresh(t.Context(), "shop", wanted, nil)
			if err != nil || len(found) != c.wanted {
				t.Fatalf("%d of %d, %v", len(found), c.wanted, err)
			}
			lists, reads := 0, 0
			for _, request := range server.Requests() {
				switch path, _, _ := strings.Cut(request, "?"); {
				case strings.Contains(request, "resourceVersion"):
					t.Errorf("not a consistent read: %s", request)
				case strings.HasSuffix(path, "/namespaces/shop/configmaps"):
					lists++
				default:
					reads++
				}
			}
			if lists != c.lists || reads != c.reads {
				t.Errorf("%d pages and %d reads, want %d and %d", lists, reads, c.lists, c.reads)
			}
			live, err := NewChecker(store, CheckerOptions{Timeout: time.Minute}).Fresh(t.Context(), "shop", []checksum.Source{wanted[7]}, nil)
			if err != nil || !found[wanted[7]].Equal(live[wanted[7]]) {
				t.Errorf("web-7: %v, want %v, %v", found[wanted[7]], live[wanted[7]], err)
			}
		})
	}
}
