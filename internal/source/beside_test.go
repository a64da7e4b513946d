package source

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/cache/follow/fakeapi"
)

// TestWhatIsReadBesideIsToldIfItComesInTime: changed, gone, or not answered.
func TestWhatIsReadBesideIsToldIfItComesInTime(t *testing.T) {
	synctest.Test(t, whatIsReadBesideIsToldIfItComesInTime)
}

func whatIsReadBesideIsToldIfItComesInTime(t *testing.T) {
	server := fakeapi.Piped(t)
	for _, name := range []string{"web", "same", "changed", "gone", "hangs", "refused"} {
		server.Put("configmaps", configMap("shop", name, map[string]string{"a": "1"}))
	}
	hangs := make(chan struct{})
	server.Refuse("/refused$", fakeapi.ErrForbidden)
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/hangs") {
			<-hangs
		}
		return false
	}
	defer close(hangs)
	store := stale(t, server)
	server.Put("configmaps", configMap("shop", "changed", map[string]string{"a": "2"}))
	server.Delete("configmaps", "shop", "gone")

	begun := time.Now() // of the bubble: what is answered at once takes no time
	found, err := NewChecker(store, CheckerOptions{Timeout: time.Minute}).Fresh(t.Context(), "shop", []checksum.Source{web}, named("same", "changed", "gone", "hangs", "refused"))
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %s: it waited for what was read beside", took)
	}
	for name, want := range map[string]*checksum.Content{
		"web": contentOf(map[string]string{"a": "1"}), "same": contentOf(map[string]string{"a": "1"}), "changed": contentOf(map[string]string{"a": "2"}), "gone": nil,
	} {
		if content, told := found[named(name)[0]]; !told || !content.Equal(want) {
			t.Errorf("%s: %v, %v", name, content, told)
		}
	}
	if len(found) != 4 {
		t.Errorf("it tells of what it does not know: %v", found)
	}
}

func named(names ...string) (sources []checksum.Source) {
	for _, name := range names {
		sources = append(sources, checksum.Source{Kind: checksum.ConfigMap, Name: name})
	}
	return sources
}

// TestABesideReadProvesNothing: what must be proven is, or there is an error.
func TestABesideReadProvesNothing(t *testing.T) {
	server := fakeapi.New(t)
	server.Refuse("/web$", fakeapi.ErrForbidden)
	found, err := NewChecker(stale(t, server), CheckerOptions{Timeout: time.Minute}).Fresh(t.Context(), "shop", []checksum.Source{web}, named("same"))
	if !errors.Is(err, ErrNotProven) || found != nil || strings.Contains(err.Error(), "same") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestReadsBesideLeaveRoom: however many there are, what must be proven finds a slot.
func TestReadsBesideLeaveRoom(t *testing.T) { synctest.Test(t, readsBesideLeaveRoom) }

func readsBesideLeaveRoom(t *testing.T) {
	server := fakeapi.Piped(t)
	hangs, filled := make(chan struct{}), make(chan struct{}, 100)
	server.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/web-") {
			filled <- struct{}{}
			<-hangs
		}
		return false
	}
	defer close(hangs)
	var beside []checksum.Source
	for _, source := range many(server, 100) {
		beside = append(beside, checksum.Source{Kind: checksum.Secret, Name: source.Name})
	}
	server.Put("configmaps", configMap("shop", "web", nil))
	checker := NewChecker(stale(t, server), CheckerOptions{Timeout: time.Minute, Parallel: 4})
	for range 3 { // reads that hang outlive their call
		if _, err := checker.Fresh(t.Context(), "shop", []checksum.Source{web}, beside); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(filled); n != 2 {
		t.Errorf("%d reads beside are under way, want half of 4", n)
	}
}
