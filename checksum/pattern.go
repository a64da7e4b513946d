package checksum

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// SourcePattern names sources of one kind by a glob (path.Match) of their name.
type SourcePattern struct {
	Kind Kind
	Name string
}

// String writes a pattern the way users do: secret/db-*.
func (p SourcePattern) String() string { return string(p.Kind) + "/" + p.Name }

// Matches reports whether a source is named.
func (p SourcePattern) Matches(source Source) bool {
	if p.Kind != source.Kind {
		return false
	}
	matched, err := path.Match(p.Name, source.Name)
	return matched && err == nil
}

func anyMatches(patterns []SourcePattern, source Source) bool {
	return slices.ContainsFunc(patterns, func(p SourcePattern) bool { return p.Matches(source) })
}

// Bounds of a list in a setting. It is compared with each name in a namespace while a request waits.
const (
	mostItems = 256
	// longestName is how long the name of an object, and a key, can be.
	longestName = validation.DNS1123SubdomainMaxLength
	// mostGlob is how many characters all globs of a list may have together:
	// path.Match may take as many steps for each character of a name.
	mostGlob = 4000
)

// room is an error if a list has as many items as it may.
func room(items int) error {
	if items < mostItems {
		return nil
	}
	return fmt.Errorf("want no more than %d items", mostItems)
}

// items takes a comma list apart. Blanks around items, and a comma too many, mean
// nothing.
func items(list string) ([]string, error) {
	var found []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if err := room(len(found)); err != nil {
			return nil, err
		}
		found = append(found, item)
	}
	return sortedUnique(found), nil
}

// someItems returns items; an empty list is an error, as it cannot be intended.
func someItems(list string) ([]string, error) {
	found, err := items(list)
	if err == nil && len(found) == 0 {
		err = errors.New("the list is empty")
	}
	return found, err
}

// parseSourcePatterns reads a list such as "configmap/web-message,secret/db-*".
func parseSourcePatterns(list string) ([]SourcePattern, error) {
	names, err := someItems(list)
	if err != nil {
		return nil, err
	}
	patterns := make([]SourcePattern, 0, len(names))
	globs := make([]string, 0, len(names))
	for _, item := range names {
		kind, glob, _ := strings.Cut(item, "/")
		pattern := SourcePattern{Kind: Kind(kind), Name: glob}
		if !pattern.Kind.known() {
			return nil, fmt.Errorf("%q: %s", item, wantSource)
		}
		if err := checkGlob(glob, "name", func(plain string) bool { return Source{pattern.Kind, plain}.Nameable() }); err != nil {
			return nil, err
		}
		patterns, globs = append(patterns, pattern), append(globs, glob)
	}
	return patterns, checkLengths(globs)
}

// parseSources reads a list such as "configmap/web-message,secret/db".
func parseSources(list string) ([]Source, error) {
	names, err := someItems(list)
	if err != nil {
		return nil, err
	}
	sources := make([]Source, 0, len(names))
	for _, item := range names {
		if isGlob(item) {
			return nil, fmt.Errorf("%q: globs are not allowed here; write whole names", item)
		}
		source, err := ParseSource(item)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// parseKeyPatterns reads a list of keys of a source, globs among them.
func parseKeyPatterns(list string) ([]string, error) {
	patterns, err := someItems(list)
	if err != nil {
		return nil, err
	}
	for _, pattern := range patterns {
		if err := checkGlob(pattern, "key", func(plain string) bool { return len(validation.IsConfigMapKey(plain)) == 0 }); err != nil {
			return nil, err
		}
	}
	return patterns, checkLengths(patterns)
}

// globSigns are the characters that have a meaning in a glob (path.Match).
const globSigns = `*?[]^\`

func isGlob(text string) bool { return strings.ContainsAny(text, globSigns) }

// checkGlob refuses what path.Match cannot read, and what cannot match any name
// because it is longer than any or a character of it stands in none.
func checkGlob(glob, what string, valid func(plain string) bool) error {
	if err := checkLength(glob); err != nil {
		return err
	}
	if _, err := path.Match(glob, ""); err != nil {
		return fmt.Errorf("%q is not a valid glob: check its brackets and backslashes", glob)
	}
	characters := strings.Map(func(r rune) rune {
		if strings.ContainsRune(globSigns+"-.", r) { // where these may stand depends on what matches the signs
			return -1
		}
		return r
	}, glob)
	switch {
	case !isGlob(glob) && !valid(glob):
		return fmt.Errorf("%q: no object can have this %s", glob, what)
	case isGlob(glob) && !valid("a"+characters+"a"):
		return fmt.Errorf("%q: no %s can contain these characters", glob, what)
	}
	return nil
}

// checkLengths refuses globs that are too long together. What is no glob is compared
// at once.
func checkLengths(globs []string) error {
	sum := 0
	for _, glob := range globs {
		if isGlob(glob) {
			sum += len(glob)
		}
	}
	if sum > mostGlob {
		return fmt.Errorf("want globs of no more than %d characters in all", mostGlob)
	}
	return nil
}

func checkLength(pattern string) error {
	if len(pattern) > longestName {
		return fmt.Errorf("%q: want no more than %d characters", shortened(pattern), longestName)
	}
	return nil
}

// matchesAny reports whether a key is named by one of some globs.
func matchesAny(globs []string, key string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, err := path.Match(glob, key)
		return matched && err == nil
	})
}
