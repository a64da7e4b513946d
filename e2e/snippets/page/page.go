// Package page finds the snippets of a page of Markdown: what stands between two lines
// of ```. A comment before a snippet says how to take it, one or more of:
//
//	<!-- not run: needs Docker -->   it is not run, and that is counted
//	<!-- file: values.yaml -->       it is written to this file
//	<!-- edit: s/old/new/ -->        what kubectl edit does in it (sed)
//	<!-- printed above -->           the snippet before it prints these lines; … stands for anything
package page

import (
	"fmt"
	"regexp"
	"strings"
)

// Snippet is one of them.
type Snippet struct {
	Line     int // of the page on which it begins
	Language string
	Text     string
	NotRun   string // why
	File     string
	Edit     string
	Printed  bool
}

var (
	fence   = regexp.MustCompile("^( *)```\\s*(\\w*)")
	comment = regexp.MustCompile(`^\s*<!-- ((?:not run|file|edit): (.+)|printed above) -->\s*$`)
)

// Read finds the snippets of a page.
func Read(text string) ([]Snippet, error) {
	var found []Snippet
	var next Snippet
	within, indent := false, ""
	for number, line := range strings.Split(text, "\n") {
		start := fence.FindStringSubmatch(line)
		switch {
		case within && start != nil:
			found = append(found, next)
			next, within = Snippet{}, false
		case within:
			next.Text += strings.TrimPrefix(line, indent) + "\n"
		case start != nil:
			within, indent = true, start[1]
			next.Line, next.Language = number+1, start[2]
		case comment.MatchString(line):
			next.told(comment.FindStringSubmatch(line))
		case strings.TrimSpace(line) != "":
			if next != (Snippet{}) {
				return nil, fmt.Errorf("line %d: a comment says how to take a snippet, and none follows", number+1)
			}
		}
	}
	if within {
		return nil, fmt.Errorf("line %d: the snippet does not end", next.Line)
	}
	return found, nil
}

func (s *Snippet) told(match []string) {
	switch what, _, _ := strings.Cut(match[1], ":"); what {
	case "not run":
		s.NotRun = match[2]
	case "file":
		s.File = match[2]
	case "edit":
		s.Edit = match[2]
	default:
		s.Printed = true
	}
}

// Missing is the first line of a snippet that was not printed, in this order; nothing when
// all were. Spaces count as one.
func (s *Snippet) Missing(printed string) string {
	lines := strings.Split(printed, "\n")
	for line := range strings.Lines(s.Text) {
		words := strings.Fields(line)
		for i, word := range words {
			words[i] = strings.ReplaceAll(regexp.QuoteMeta(word), "…", ".*")
		}
		want := regexp.MustCompile("^" + strings.Join(words, " ") + "$")
		at := 0
		for at < len(lines) && !want.MatchString(strings.Join(strings.Fields(lines[at]), " ")) {
			at++
		}
		if at == len(lines) {
			return strings.TrimSpace(line)
		}
		lines = lines[at+1:]
	}
	return ""
}
