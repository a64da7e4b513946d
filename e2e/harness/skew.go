package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// readsClock is the line of the standard library's time.Now that asks for the
// wall clock; timers and durations do not depend on it.
const readsClock = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"

// BuildSkewed builds configstamp with a wall clock that is ahead by skew (or
// behind, when it is negative), in whole seconds, as on a machine whose clock is
// wrong. Everything is compiled anew: it takes some minutes the first time.
func (r *Run) BuildSkewed(ctx context.Context, binary string, skew time.Duration) error {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("looking for the standard library: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(goroot)), "src/time/time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return fmt.Errorf("reading the standard library: %w", err)
	}
	if bytes.Count(text, []byte(readsClock)) != 1 {
		return fmt.Errorf("skewing the clock: %s does not hold %q once: bring readsClock up to date with this version of Go", original, readsClock)
	}
	skewed := fmt.Sprintf("%s\tsec += %d\n", readsClock, int64(skew.Seconds()))
	changed, file := filepath.Join(r.Dir, fmt.Sprintf("time%+d.go", int64(skew.Seconds()))), binary+".overlay.json"
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return fmt.Errorf("skewing the clock: %w", err)
	}
	if err := os.WriteFile(changed, bytes.Replace(text, []byte(readsClock), []byte(skewed), 1), 0o600); err != nil {
		return fmt.Errorf("skewing the clock: %w", err)
	}
	if err := os.WriteFile(file, replace, 0o600); err != nil {
		return fmt.Errorf("skewing the clock: %w", err)
	}
	return build(ctx, ".", "./cmd/configstamp", binary, "-overlay", file)
}
