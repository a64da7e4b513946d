package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var writeTraces = flag.Bool("write-traces", false, "write the traces of the simulation anew")

// TestTraces has the simulation send the same patches and tell the same events, at the
// same moments, as it did when its traces were recorded.
func TestTraces(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		w := simulate(t, seed)
		sum := sha256.Sum256([]byte(w.trace.String()))
		path, is := filepath.Join("testdata", fmt.Sprintf("simulation-%d.sha256", seed)), hex.EncodeToString(sum[:])+"\n"
		if os.Getenv("TRACE_DIR") != "" {
			_ = os.WriteFile(filepath.Join(os.Getenv("TRACE_DIR"), fmt.Sprint(seed)), []byte(w.trace.String()), 0o600)
		}
		if *writeTraces {
			if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if is != string(was) {
			t.Errorf("seed %d: the trace has changed", seed)
		}
	}
}

// note writes one line of the trace.
func (w *world) note(words ...string) {
	fmt.Fprintln(&w.trace, w.clock.Now().Format(time.TimeOnly), strings.Join(words, " "))
}
