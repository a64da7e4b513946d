package main

import (
	"fmt"
	"strings"

	"github.com/configstamp/configstamp/checksum"
)

// words joins "configmap web" to "configmap/web".
func words(args []string) string { return strings.Join(args, "/") }

// sourceOf reads a source from what people write: configmap/web, cm/web, secrets/db, or
// the two words apart.
func sourceOf(args []string) (checksum.Source, error) {
	const want = "want configmap/NAME (or cm/NAME), secret/NAME or secretproviderclass/NAME"
	kind, name, found := strings.Cut(words(args), "/")
	if !found || name == "" {
		return checksum.Source{}, fmt.Errorf("%q is not a source: %s", words(args), want)
	}
	source := checksum.Source{Kind: sourceKind(kind), Name: name}
	switch {
	case source.Kind == "":
		return source, fmt.Errorf("%q is not a kind of source: %s", kind, want)
	case !source.Nameable():
		return source, fmt.Errorf("no object can be called %q: %s", name, want)
	}
	return source, nil
}

// sourceKind reads what people call a kind of sources, "" if it is none.
func sourceKind(word string) checksum.Kind {
	plain, _, _ := strings.Cut(strings.ToLower(word), ".")
	switch plain {
	case "cm", "configmap", "configmaps":
		return checksum.ConfigMap
	case "secret", "secrets":
		return checksum.Secret
	case "secretproviderclass", "secretproviderclasses":
		return checksum.SecretProviderClass
	}
	return ""
}

// namesSource reports whether arguments begin with a kind of sources.
func namesSource(args []string) bool {
	kind, _, found := strings.Cut(words(args), "/")
	return found && sourceKind(kind) != ""
}
