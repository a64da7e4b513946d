package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/internal/manifest"
)

// Each target runs for as long as is wanted:
// go test ./internal/manifest -run '^$' -fuzz FuzzAnnotate -fuzztime 1m

var places = regexp.MustCompile(`(?m)^a\.yaml:(\d+): `)

// Whatever the text is, either it comes out, and comes out the same a second time, or
// there is an error that says where in it.
func FuzzAnnotate(f *testing.F) {
	paths, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d cases, error %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		for _, document := range bytes.SplitAfter(text, []byte("\n---\n")) {
			f.Add(document)
			f.Add(append(bytes.Clone(document), settings...))
		}
	}
	f.Add([]byte("\xef\xbb\xbf" + user + configMap("data: {A: ä}\n")))
	f.Add([]byte("{a: &a [*a]}\n---\n? [b]\n: c\n...\n%YAML 1.2\n--- >\n x\r\u0085\u2028y\n"))
	o := options(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		input := bytes.Clone(text)
		result, err := manifest.Annotate([]manifest.File{{Name: "a.yaml", Text: text}}, o)
		if !bytes.Equal(input, text) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			lines := 1 + strings.Count(strings.ReplaceAll(string(text), "\r", "\n"), "\n")
			found := places.FindAllStringSubmatch(err.Error(), -1)
			if len(found) == 0 {
				t.Fatalf("an error without a place: %v", err)
			}
			for _, parts := range found {
				if line, err := strconv.Atoi(parts[1]); err != nil || line < 1 || line > lines {
					t.Fatalf("line %s of %d", parts[1], lines)
				}
			}
			return
		}
		again, err := manifest.Annotate([]manifest.File{{Name: "a.yaml", Text: result.Texts[0]}}, o)
		if err != nil || !bytes.Equal(again.Texts[0], result.Texts[0]) {
			t.Fatalf("a second time: %v\n%s\nbecame\n%s\nof\n%s", err, result.Texts[0], again.Texts, input)
		}
	})
}
