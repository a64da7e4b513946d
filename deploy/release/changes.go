package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// change is one of the changelog, as Artifact Hub shows it.
type change struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
}

// changes are those of the version, or of "Unreleased" where the changelog does not have it
// yet, as Artifact Hub's annotation.
func (r *release) changes() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	all := changesOf(string(text), r.number())
	if len(all) == 0 {
		all = changesOf(string(text), "Unreleased")
	}
	if len(all) == 0 {
		return "", fmt.Errorf("the changelog has nothing of [%s], nor of [Unreleased]", r.number())
	}
	made, err := yaml.Marshal(all)
	return string(made), err
}

// changesOf are the first sentences of a version's items, in the form of keepachangelog.com,
// without Markdown's links.
func changesOf(changelog, version string) (all []change) {
	_, section, found := strings.Cut(changelog, "\n## ["+version+"]")
	if !found {
		return nil
	}
	section, _, _ = strings.Cut(section, "\n## ")
	link := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	for _, part := range strings.Split(section, "\n### ")[1:] {
		kind, items, _ := strings.Cut(part, "\n")
		for _, item := range strings.Split("\n"+items, "\n- ")[1:] {
			words := strings.Join(strings.Fields(link.ReplaceAllString(item, "$1")), " ")
			sentence, _, _ := strings.Cut(words, ". ")
			all = append(all, change{strings.ToLower(strings.TrimSpace(kind)), strings.TrimSuffix(sentence, ".")})
		}
	}
	return all
}
