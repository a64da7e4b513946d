package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, component, script string) (*Running, string) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal("these tests run sh, and there is none on the PATH")
	}
	dir := t.TempDir()
	running, err := Start(Program{
		Component: component, Path: shell, Args: []string{"-c", script}, Mark: dir, Logs: dir, Records: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = running.Kill() })
	return running, dir
}

func TestAStartedProcessIsRememberedAndKilled(t *testing.T) {
	running, dir := start(t, "sleeper", "sleep 60 & wait")
	records, err := Records(dir)
	if err != nil || len(records) != 1 || !records[0].Alive() || records[0].PID != running.PID {
		t.Fatalf("records are %+v, %v", records, err)
	}
	if err := KillAll(dir, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if records[0].Alive() {
		t.Error("it should be gone")
	}
}

func TestAnotherProcessWithTheSameIDIsLeftAlone(t *testing.T) {
	running, _ := start(t, "sleeper", "sleep 60")
	stale := running.Record
	stale.Identity = "somebody else"
	if stale.Alive() {
		t.Error("a record of another start should not be alive")
	}
	if err := stale.Kill(); err != nil {
		t.Error(err)
	}
	if !running.Alive() {
		t.Error("the process was killed by a record that is not its own")
	}
}

func TestAnEndedProcessSaysWhatItSaidLast(t *testing.T) {
	running, _ := start(t, "failing", "echo no such thing >&2; exit 3")
	<-running.ended
	err := running.Ended()
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v", err)
	}
	if running.Alive() {
		t.Error("it should be gone")
	}
}

func TestMarkedProcessesAreFoundWithoutARecord(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the environment of a process")
	}
	running, dir := start(t, "stray", "sleep 60")
	if err := os.Remove(filepath.Join(dir, "stray.json")); err != nil {
		t.Fatal(err)
	}
	// The mark of another cluster, whose name begins alike.
	if err := KillMarked(dir[:len(dir)-1]); err != nil {
		t.Fatal(err)
	}
	if !running.Alive() {
		t.Fatal("another cluster's mark killed it")
	}
	if err := KillMarked(dir); err != nil {
		t.Fatal(err)
	}
	select {
	case <-running.ended:
	case <-time.After(5 * time.Second):
		t.Error("it should be gone")
	}
}
