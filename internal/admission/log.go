package admission

import (
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// complaints tell of bad requests, so that whoever sends them by the thousand does not fill
// the log: of the first at once, then of how many there were, once a minute.
type complaints struct {
	log klog.Logger

	mu      sync.Mutex
	count   int
	newest  string
	waiting bool // a line was written less than complainEvery ago
}

const (
	complainEvery = time.Minute
	// longestComplaint bounds what is told of a request: its sender may have chosen the words.
	longestComplaint = 200
)

func (c *complaints) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.newest = strings.ToValidUTF8(reason[:min(len(reason), longestComplaint)], "")
	if !c.waiting {
		c.tell()
	}
}

// tell wants the lock.
func (c *complaints) tell() {
	if c.waiting = c.count > 0; !c.waiting {
		return
	}
	c.log.Info("Bad requests, told of once a minute", "count", c.count, "newest", c.newest)
	c.count = 0
	time.AfterFunc(complainEvery, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tell()
	})
}

// Write implements io.Writer: it takes what net/http has to say, which is of failed handshakes
// but for seldom things.
func (c *complaints) Write(line []byte) (int, error) {
	c.add(strings.TrimSpace(string(line)))
	return len(line), nil
}

func (c *complaints) logger() *log.Logger { return log.New(c, "", 0) }

// heard complains of each answer that is an error.
func (c *complaints) heard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if answer.status >= http.StatusBadRequest {
			c.add(http.StatusText(answer.status) + " to " + r.RemoteAddr + ": " + answer.reason)
		}
	})
}

// answer remembers an error that is answered.
type answer struct {
	http.ResponseWriter
	status int
	reason string
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) {
	if a.status >= http.StatusBadRequest && a.reason == "" {
		a.reason = strings.TrimSpace(string(text[:min(len(text), longestComplaint)]))
	}
	return a.ResponseWriter.Write(text)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
