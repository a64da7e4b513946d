package harness

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// Beside builds a program with another module of the project, and runs it beside the cluster until the end of the test. Its
// log is in Dir.
func (r *Run) Beside(t testing.TB, module, pkg string, args ...string) {
	t.Helper()
	r = r.Of(t)
	binary := filepath.Join(r.Dir, path.Base(pkg))
	Must(t, build(t.Context(), module, pkg, binary, "-trimpath", "-ldflags", "-s -w"))
	log, err := os.Create(binary + ".log")
	Must(t, err)
	command := exec.Command(binary, args...)
	command.Stdout, command.Stderr, command.SysProcAttr = log, log, dieWithUs()
	Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
	})
}
