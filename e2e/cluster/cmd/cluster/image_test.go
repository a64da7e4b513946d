package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWantStatic(t *testing.T) {
	static, script := filepath.Join(t.TempDir(), "pause"), filepath.Join(t.TempDir(), "script")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", static, "../pause")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := wantStatic(static); err != nil {
		t.Error(err)
	}
	if wantStatic(script) == nil {
		t.Error("a script is taken for a program")
	}
	interpreter, err := exec.CommandContext(t.Context(), "ldd", "/bin/sh").CombinedOutput()
	if err != nil || !strings.Contains(string(interpreter), "ld-") {
		t.Skip("/bin/sh is not known to be linked dynamically")
	}
	if wantStatic("/bin/sh") == nil {
		t.Error("/bin/sh is taken, and its dynamic linker is not in the image")
	}
}
