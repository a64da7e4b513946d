package admission

import (
	"log"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// complaints logs bad requests, so that thousands of them do not fill the log: the first one at once, then their number
// once a minute.
type complaints struct {
	log klog.Logger

	mu      sync.Mutex
	count   int
	newest  string
	waiting bool // a line was written less than complainEvery ago
}

const (
	complainEvery = time.Minute
	// longestComplaint bounds the text about a request: its sender may have chosen it.
	longestComplaint = 200
)

func (c *complaints) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.newest = strings.ToValidUTF8(reason[:min(len(reason), longestComplaint)], "")
	if !c.waiting {
		c.flush()
	}
}

// flush logs what has been counted. The caller holds the lock.
func (c *complaints) flush() {
	if c.waiting = c.count > 0; !c.waiting {
		return
	}
	c.log.Info("Bad requests, logged once a minute", "count", c.count, "newest", c.newest)
	c.count = 0
	time.AfterFunc(complainEvery, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.flush()
	})
}

// Write implements io.Writer, for the log of net/http, which is mostly about failed handshakes.
func (c *complaints) Write(line []byte) (int, error) {
	c.add(strings.TrimSpace(string(line)))
	return len(line), nil
}

func (c *complaints) logger() *log.Logger { return log.New(c, "", 0) }

// counted adds each answer that is an error.
func (c *complaints) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if answer.status >= http.StatusBadRequest {
			c.add(http.StatusText(answer.status) + " to " + r.RemoteAddr + ": " + answer.reason)
		}
	})
}

// answer holds the error of an answer.
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
