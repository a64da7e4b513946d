package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// The one table of reasons is all there is: each of them is used, events go by it, and
// what workloads wait for has its series.
func TestReasonsAreThoseOfTheTable(t *testing.T) {
	rows := rowsByName(t)
	used := map[string]bool{}
	named := regexp.MustCompile(`\bchecksum\.([A-Z]\w+)`)
	waits := regexp.MustCompile(`\bhold\(\w+, checksum\.([A-Z]\w+)\)`)
	written := regexp.MustCompile(`corev1\.EventType(Normal|Warning),\s*"\w+"`)
	for path, text := range productCode(t) {
		if strings.HasPrefix(path, "checksum/") {
			text = regexp.MustCompile(`\b([A-Z]\w+)\b`).ReplaceAllString(text, "checksum.$1")
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			used[match[1]] = true
		}
		for _, match := range waits.FindAllStringSubmatch(text, -1) {
			if rows[match[1]].In&checksum.Waiting == 0 {
				t.Errorf("%s: workloads wait for %s, which no metric counts", path, match[1])
			}
		}
		if call := written.FindString(text); call != "" {
			t.Errorf("%s: an event has a reason that is not of the table: %s", path, call)
		}
	}
	for name := range rows {
		if !used[name] {
			t.Errorf("nothing uses the reason %s", name)
		}
	}
}

// rowsByName are the rows by the names of their constants, which stand in one order.
func rowsByName(t *testing.T) map[string]checksum.Row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "checksum", "reasons.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t([A-Z]\w+)$`).FindAllStringSubmatch(string(text), -1)
	table := checksum.Reasons()
	if len(names) != len(table) {
		t.Fatalf("%d names and %d rows: these tests cannot read checksum/reasons.go", len(names), len(table))
	}
	rows := make(map[string]checksum.Row, len(names))
	for i, name := range names {
		rows[name[1]] = table[i]
	}
	return rows
}

// productCode is the code of the product by its path, but for the table itself.
func productCode(t *testing.T) map[string]string {
	t.Helper()
	root, code := os.DirFS(filepath.Join("..", "..")), map[string]string{}
	for _, folder := range []string{"checksum", "webhook", "controller", "internal", "cmd"} {
		err := fs.WalkDir(root, folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "checksum/reasons.go" {
				return err
			}
			text, err := fs.ReadFile(root, path)
			code[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return code
}
