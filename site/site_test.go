// Package site holds what makes a site of the documentation (hugo.yaml: what lies where;
// layouts; assets), and checks the site that "make docs" has made.
package site

import (
	"html"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root       = ".."
	made       = "../dist/site"
	repository = "https://github.com/configstamp/configstamp/"
)

var (
	links = regexp.MustCompile(`\s(href|src)="([^"]*)"`)
	ids   = regexp.MustCompile(`\sid="([^"]*)"`)

	literal   = regexp.MustCompile(`(?s)<(pre|code|script|style)\b.*?</(pre|code|script|style)>|<[^>]*>`)
	rawMarkup = regexp.MustCompile("\\*\\*|\\]\\(|\\|---|```|\\{\\{|<!--|(?m:^#{1,6} )")
)

// pages are the site's pages, by their paths in it.
func pages(t *testing.T) map[string]string {
	t.Helper()
	if _, err := os.Stat(made); err != nil {
		t.Skip("SKIPPED (1 check): there is no site; make docs makes it")
	}
	found := map[string]string{}
	err := filepath.WalkDir(made, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(made, file)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSite_EveryLinkLeadsSomewhere(t *testing.T) {
	all, seen := pages(t), 0
	for name, text := range all {
		for _, link := range links.FindAllStringSubmatch(text, -1) {
			seen++
			if problem := broken(all, name, link[1], html.UnescapeString(link[2])); problem != "" {
				t.Errorf("%s: %s: %s", name, link[2], problem)
			}
		}
	}
	if len(all) < 25 || seen < 1000 {
		t.Errorf("only %d pages with %d links were found", len(all), seen)
	}
}

// Markdown that was not rendered, and diagrams in a language that the site does not draw.
func TestSite_NoRawMarkup(t *testing.T) {
	for name, text := range pages(t) {
		if raw := rawMarkup.FindString(literal.ReplaceAllString(text, "")); raw != "" {
			t.Errorf("%s shows %q", name, raw)
		}
		if strings.Contains(text, "flowchart ") {
			t.Errorf("%s shows the source of a diagram", name)
		}
	}
}

// broken says why a link leads nowhere, nothing when it leads somewhere.
func broken(all map[string]string, page, attribute, link string) string {
	to, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if file, ours := strings.CutPrefix(link, repository); ours {
		file, _, _ = strings.Cut(file, "#")
		parts := strings.SplitN(file, "/", 3)
		if len(parts) < 3 || parts[1] != "main" {
			return ""
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(parts[2]))); err != nil {
			return "there is no such file in the repository"
		}
		return ""
	}
	if to.IsAbs() || to.Host != "" {
		if attribute == "src" {
			return "the site asks another host for something"
		}
		return ""
	}
	target := page
	if to.Path != "" {
		target = path.Join(path.Dir(page), to.Path)
	}
	if strings.HasSuffix(target, ".md") {
		return "a page is linked by its source"
	}
	if info, err := os.Stat(filepath.Join(made, filepath.FromSlash(target))); err == nil && info.IsDir() {
		target = path.Join(target, "index.html")
	} else if err != nil {
		return "there is no such file"
	}
	if to.Fragment != "" && !hasID(all[target], to.Fragment) {
		return "there is no such heading"
	}
	return ""
}

func hasID(text, id string) bool {
	return slices.ContainsFunc(ids.FindAllStringSubmatch(text, -1), func(match []string) bool { return html.UnescapeString(match[1]) == id })
}
