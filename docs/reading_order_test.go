package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named finds the files of its own folder that a package comment names.
var named = regexp.MustCompile(`(^|[^/>\w])(\w+\.go)\b`)

// A package comment that gives a reading order names files that exist, and in the product
// it names all of them.
func TestReadingOrdersNameEveryFile(t *testing.T) {
	ordered := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if base := entry.Name(); base == "testdata" || base == "dist" || len(base) > 2 && base[0] == '.' {
			return filepath.SkipDir
		}
		folder, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		comment, teller, files := packageComment(t, path)
		order := map[string]bool{}
		for _, name := range named.FindAllStringSubmatch(comment, -1) {
			if order[name[2]] = true; !files[name[2]] {
				t.Errorf("%s: the package comment names %s, which is not there", folder, name[2])
			}
		}
		product := folder != "e2e" && !strings.HasPrefix(folder, "e2e"+string(filepath.Separator))
		if len(order) == 0 || !product {
			return nil
		}
		ordered++
		for file := range files {
			if file != teller && !order[file] && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s: the package comment in %s gives a reading order, and does not name %s", folder, teller, file)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if ordered < 8 {
		t.Errorf("only %d packages have a reading order", ordered)
	}
}

// packageComment reads the comment of the package in a folder, and tells which file it
// stands in, of which.
func packageComment(t *testing.T, folder string) (comment, teller string, files map[string]bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]bool{}
	for _, path := range paths {
		files[filepath.Base(path)] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if text := file.Doc.Text(); text != "" {
			comment, teller = text, filepath.Base(path)
		}
	}
	return comment, teller, files
}
