package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryMutantStillHasItsLine(t *testing.T) {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	for way, change := range mutants() {
		text, err := os.ReadFile(filepath.Join(dir, change.file))
		if err != nil {
			t.Fatal(err)
		}
		if times := strings.Count(string(text), change.from); times != 1 {
			t.Errorf("%s: %s holds %q %d times, want once", way, change.file, change.from, times)
		}
	}
}
