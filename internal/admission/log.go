package admission

import (
	"log"
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
