// Package docs holds what people read, and checks that its links lead somewhere.
package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = ".."

// Every link of every page to a file or a heading of the project leads to one.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, links := pages(t), 0
	for _, page := range pages {
		for _, link := range linksOf(t, page) {
			links++
			if problem := broken(t, page, link); problem != "" {
				t.Errorf("%s: (%s): %s", page, link, problem)
			}
		}
	}
	if len(pages) < 10 || links < 50 {
		t.Errorf("only %d pages with %d links were found", len(pages), links)
	}
}

// Every page of this folder is on the map, docs/README.md.
func TestEveryPageIsOnTheMap(t *testing.T) {
	mapped := linksOf(t, filepath.Join(root, "docs", "README.md"))
	for _, page := range pages(t) {
		name, err := filepath.Rel(filepath.Join(root, "docs"), page)
		if err != nil || strings.HasPrefix(name, "..") || name == "README.md" {
			continue
		}
		if !slices.ContainsFunc(mapped, func(link string) bool { file, _, _ := strings.Cut(link, "#"); return file == filepath.ToSlash(name) }) {
			t.Errorf("docs/%s is not on the map, docs/README.md", name)
		}
	}
}

// pages are the project's Markdown files.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// prose is a page without what is written out as code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```").ReplaceAllString(string(text), "")
}

// linksOf are the links of a page that stay within the project.
func linksOf(t *testing.T, page string) []string {
	t.Helper()
	var found []string
	for _, match := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(t, page), -1) {
		if target, err := url.Parse(match[1]); err != nil || !target.IsAbs() {
			found = append(found, match[1])
		}
	}
	return found
}

// broken says why a link leads nowhere, nothing when it leads somewhere.
func broken(t *testing.T, page, link string) string {
	t.Helper()
	target, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	path := page
	if target.Path != "" {
		path = filepath.Join(filepath.Dir(page), filepath.FromSlash(target.Path))
	}
	if _, err := os.Stat(path); err != nil {
		return "there is no such file"
	}
	if target.Fragment != "" && !slices.Contains(anchors(t, path), target.Fragment) {
		return "there is no such heading"
	}
	return ""
}

// anchors are the names of a page's headings, as they are made of them where such
// pages are shown.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	var found []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.+)$`).FindAllStringSubmatch(prose(t, page), -1) {
		found = append(found, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading[1])))
	}
	return found
}
