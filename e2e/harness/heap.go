package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BuildWithHeapDump builds configstamp with one file laid over it, by which its
// processes write a heap dump when asked by HeapDump.
func (r *Run) BuildWithHeapDump(ctx context.Context, binary string) error {
	dir, err := root()
	if err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(dir, "cmd", "configstamp", "zz_heapdump.go"): filepath.Join(dir, "e2e", "testdata", "heapdump", "heapdump.go"),
	}})
	if err != nil {
		return fmt.Errorf("writing an overlay: %w", err)
	}
	file := binary + ".overlay.json"
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("writing an overlay: %w", err)
	}
	return build(ctx, ".", "./cmd/configstamp", binary, "-overlay", file)
}

// HeapDump has a process of a binary that BuildWithHeapDump made collect its
// garbage and write down what is left (debug.WriteHeapDump).
func (p *Process) HeapDump(t testing.TB) []byte {
	t.Helper()
	if !p.Running() {
		t.Fatalf("%s does not run", p.Name)
	}
	p.mu.Lock()
	file := fmt.Sprintf("%s.heap.%d", p.binary, p.command.Process.Pid)
	p.mu.Unlock()
	_ = os.Remove(file)
	p.signal(syscall.SIGUSR1)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil {
			return text
		}
	}
	t.Fatalf("%s wrote no heap dump", p.Name)
	return nil
}
