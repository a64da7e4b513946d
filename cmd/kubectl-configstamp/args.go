package main

import (
	"fmt"
	"strings"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/inspect"
	"github.com/configstamp/configstamp/cmd/kubectl-configstamp/internal/seen"
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

// blind is the error of those who may not list workloads: it says where.
type blind string

func (b blind) Error() string { return "you have no right to list any kind of workload " + string(b) }

// blindIn is an error where no kind of workload could be listed in any of some namespaces
// ("" for all): then nothing at all is known.
func blindIn(cluster *inspect.Cluster, settings *seen.Settings, namespaces ...string) error {
	for _, namespace := range namespaces {
		if len(cluster.Unlisted(settings, namespace)) < len(settings.Kinds.Readmitted()) {
			return nil
		}
	}
	switch {
	case len(namespaces) == 0:
		return nil
	case namespaces[0] == "":
		return blind("in all namespaces; use -n to name one that you may look at")
	}
	return blind("in namespace " + strings.Join(namespaces, ", ") + ", so nothing is known about it")
}
