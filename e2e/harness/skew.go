package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	library := filepath.Join(strings.TrimSpace(string(goroot)), "src/time/time.go")
	overlay, err := replaced(r.Dir, library, readsClock, fmt.Sprintf("%s\tsec += %d\n", readsClock, int64(skew.Seconds())))
	if err != nil {
		return err
	}
	return build(ctx, ".", "./cmd/configstamp", binary, "-overlay", overlay)
}

// replaced writes, into dir, what the go command needs to build with a file in
// which from, which must stand there once, is to.
func replaced(dir, original, from, to string) (overlay string, err error) {
	failed := func(err error) (string, error) { return "", fmt.Errorf("changing a copy of %s: %w", original, err) }
	text, err := os.ReadFile(original)
	if err != nil {
		return failed(err)
	}
	if bytes.Count(text, []byte(from)) != 1 {
		return failed(fmt.Errorf("it does not hold %q once: bring what is to be changed up to date", from))
	}
	into, err := os.MkdirTemp(dir, "changed-")
	if err != nil {
		return failed(err)
	}
	changed, file := filepath.Join(into, "changed.go"), filepath.Join(into, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return failed(err)
	}
	err = errors.Join(os.WriteFile(changed, bytes.Replace(text, []byte(from), []byte(to), 1), 0o600), os.WriteFile(file, replace, 0o600))
	if err != nil {
		return failed(err)
	}
	return file, nil
}
