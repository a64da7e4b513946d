// Package progress tells a person what is being done and for how long it has been going on.
package progress

import (
	"fmt"
	"io"
	"time"
)

// Log prints lines with the time since its start.
type Log struct {
	out   io.Writer
	start time.Time
}

// New starts a log.
func New(out io.Writer) *Log { return &Log{out: out, start: time.Now()} }

// Step prints one line.
func (l *Log) Step(format string, args ...any) {
	fmt.Fprintf(l.out, "%6.1fs  %s\n", time.Since(l.start).Seconds(), fmt.Sprintf(format, args...))
}
