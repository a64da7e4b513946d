package checksum_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

var update = flag.Bool("update", false, "write the table of settings into docs/policy.md")

// The table that people read is made of the table that is read.
func TestTheDocumentedSettingsAreThoseThatAreRead(t *testing.T) {
	const begin, end = "<!-- settings, made by: make generate -->\n", "<!-- end of settings -->"
	table := "| annotation | on |\n|---|---|\n"
	details := ""
	for _, setting := range checksum.Settings() {
		table += fmt.Sprintf("| `%s` | %s |\n", setting.Key(), setting.On)
		details += folded(fmt.Sprintf("- **`%s`**: %s.", setting.Key(), setting.Value)) + folded(fmt.Sprintf("  *Meaning*: %s.", setting.Meaning))
	}
	table += "\n" + details
	path := filepath.Join("..", "docs", "policy.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(document), begin)
	was, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the marks of the table", path)
	}
	if was == table {
		return
	}
	if !*update {
		t.Fatalf("%s says something else than the code: make generate writes it", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+table+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// folded is a text in lines that people can read beside each other in a diff.
func folded(text string) string {
	const width = 140
	lines := ""
	for len(text) > width {
		end := strings.LastIndex(text[:width], " ")
		lines += text[:end] + "\n"
		text = "  " + text[end+1:]
	}
	return lines + text + "\n"
}
