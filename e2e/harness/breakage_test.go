package harness

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
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

func TestEveryWayHasTestsThatAreToCatchIt(t *testing.T) {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(dir, "e2e", "mutants", "mutants.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := ReadTrials(string(table))
	if err != nil {
		t.Fatal(err)
	}
	ways := append(slices.Collect(maps.Keys(mutants())), ProductStopped, WebhookStopped, ControllerStopped, ExtraRollouts, NothingFresh, NothingRefused, AdminAccount)
	for _, trial := range trials {
		at := slices.Index(ways, trial.Way)
		if at < 0 {
			t.Errorf("%s is no way to break the product, or stands there twice", trial.Way)
			continue
		}
		ways = slices.Delete(ways, at, at+1)
	}
	if len(ways) > 0 {
		t.Errorf("e2e/mutants/mutants.tsv does not say what catches %s", ways)
	}
}

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
