package admission

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// lines are what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return len(line), nil
}

// bad are those of bad requests since it was asked last.
func (l *lines) bad() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.all = nil }()
	return slices.DeleteFunc(l.all, func(line string) bool { return !strings.Contains(line, "Bad requests") })
}

// Bad requests of each sort, by the thousand: a line at once, and one a minute with how many
// there were, for as long as they come.
func TestServerLogsBadRequestsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		server := serveTo(klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))), t, &Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, status, err := Read(w, r, new(bytes.Buffer)); err != nil {
					http.Error(w, err.Error(), status)
				}
			}),
		})
		client := server.from(t, peer(1))
		for range 300 {
			conn := server.dial(t, peer(1))
			if _, err := fmt.Fprint(conn, "this is no TLS, and long enough to be seen as none\n"); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			for size, want := range map[int]int{10: http.StatusBadRequest, MaxBytes + 1: http.StatusRequestEntityTooLarge} {
				if status, err := server.post(client, size); err == nil && status != want {
					t.Fatalf("status %d", status)
				}
			}
		}
		if got := log.bad(); len(got) != 1 || !strings.Contains(got[0], "count=1 ") {
			t.Errorf("at once: %q", got)
		}
		time.Sleep(complainEvery + time.Second)
		if got := log.bad(); len(got) != 1 || !strings.Contains(got[0], "count=899 ") {
			t.Errorf("after a minute: %q", got)
		}
		time.Sleep(10 * complainEvery)
		if got := log.bad(); len(got) != 0 {
			t.Errorf("when none came: %q", got)
		}
		if status, err := server.post(client, 10); err != nil || status != http.StatusBadRequest {
			t.Fatal(status, err)
		}
		if got := log.bad(); len(got) != 1 || len(got[0]) > 2*longestComplaint {
			t.Errorf("at once, again: %q", got)
		}
	})
}
