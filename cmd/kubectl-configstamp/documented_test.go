package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestDocumentedCommands: what the documentation and the alerts tell people to type exists,
// with its flags, and takes as many arguments.
func TestDocumentedCommands(t *testing.T) {
	files := []string{"../../README.md", "../../CHANGELOG.md", "../../deploy/chart/files/alerts.yaml", "../../deploy/krew/configstamp.yaml"}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages of documentation, error %v", len(pages), err)
	}
	files = append(files, pages...)
	checked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range typed(string(text)) {
			if err := parses(line); err != nil {
				t.Errorf("%s tells people to type %q: %v", file, line, err)
			}
			checked++
		}
	}
	if checked < 60 {
		t.Errorf("%d commands were found: the documentation's form is not what this test reads", checked)
	}
}

var (
	// command is one of ours within a line: up to the end of code, or the shell's part.
	command     = regexp.MustCompile("kubectl configstamp ([^`|>#;,&]*)")
	placeholder = regexp.MustCompile(`<[^>]*>`)
)

// typed are the commands in blocks and words of code, and in the annotation command of an
// alert, without "kubectl configstamp".
func typed(text string) []string {
	var lines []string
	text = placeholder.ReplaceAllString(text, "X")
	block := false
	for line := range strings.Lines(text) {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			block = !block
		case block, strings.HasPrefix(trimmed, "command: "):
			for _, found := range command.FindAllStringSubmatch(line, -1) {
				lines = append(lines, strings.TrimSpace(found[1]))
			}
		default:
			for i, part := range strings.Split(line, "`") {
				if found := command.FindStringSubmatch(part); i%2 == 1 && found != nil {
					lines = append(lines, strings.TrimSpace(found[1]))
				}
			}
		}
	}
	return lines
}

// coming are commands that are told of before they are there.
func coming() []string { return []string{"doctor"} }

// parses reports whether the plugin knows a command and its flags, and takes its arguments.
func parses(line string) error {
	root := rootCommand(newPlugin(genericiooptions.NewTestIOStreamsDiscard(), atThree))
	words := strings.Fields(line)
	if len(words) == 0 || slices.Contains(coming(), words[0]) {
		return nil
	}
	of, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if of == root {
		return root.ParseFlags(rest)
	}
	if err := of.ParseFlags(rest); err != nil || slices.ContainsFunc(rest, func(word string) bool { return word == "--help" }) {
		return err
	}
	if len(rest) == 0 { // only named
		return nil
	}
	return of.ValidateArgs(of.Flags().Args())
}
