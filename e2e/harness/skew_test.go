package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACopyIsChangedAndTheOriginalStays(t *testing.T) {
	dir := t.TempDir()
	original := filepath.Join(dir, "x.go")
	if err := os.WriteFile(original, []byte("package x\n\nconst a = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := replaced(dir, original, "a = 1", "a = 2")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(overlay)
	if err != nil || !strings.Contains(string(text), original) {
		t.Fatalf("%s, %v", text, err)
	}
	changed, err := os.ReadFile(filepath.Join(filepath.Dir(overlay), "changed.go"))
	if err != nil || string(changed) != "package x\n\nconst a = 2\n" {
		t.Errorf("%s, %v", changed, err)
	}
	if _, err := replaced(dir, original, "b = 1", ""); err == nil {
		t.Error("what is not there is changed")
	}
}
