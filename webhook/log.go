package webhook

import (
	"log"
	"runtime"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

// serverLog sends what net/http has to say (failed handshakes, mostly probes
// and port scans) to the structured log.
func serverLog(to klog.Logger) *log.Logger {
	return log.New(logWriter{to}, "", 0)
}

type logWriter struct{ log klog.Logger }

// Write implements io.Writer.
func (w logWriter) Write(line []byte) (int, error) {
	w.log.V(1).Info("HTTP server", "message", strings.TrimSpace(string(line)))
	return len(line), nil
}

// stack says where a panic came from, innermost first. It names places alone:
// what panicked, and the arguments in debug.Stack, may hold content or a key.
func stack() []string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)]) // without itself and its caller
	var places []string
	for {
		frame, more := frames.Next()
		places = append(places, frame.Function+":"+strconv.Itoa(frame.Line))
		if !more {
			return places
		}
	}
}
