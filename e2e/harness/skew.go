package harness

import (
	"context"
	"fmt"
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
	library := filepath.Join(strings.TrimSpace(string(goroot)), "src/time/time.go")
	overlay, err := replaced(r.Dir, library, readsClock, fmt.Sprintf("%s\tsec += %d\n", readsClock, int64(skew.Seconds())))
	if err != nil {
		return err
	}
	return build(ctx, ".", "./cmd/configstamp", binary, "-overlay", overlay)
}
