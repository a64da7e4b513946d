package harness

import (
	"fmt"
	"strings"
)

// Trial names the tests that fail when the product is broken in a way.
type Trial struct {
	Way Breakage
	// Package and Tests are what go test is given, the latter as -run.
	Package, Tests string
	// Of is the target of make that runs them: test or long.
	Of string
}

// ReadTrials reads the table of e2e/mutants: four columns, separated by tabs, and
// comments that begin with #.
func ReadTrials(table string) ([]Trial, error) {
	var trials []Trial
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			return nil, fmt.Errorf("reading the table of mutants: %q has %d columns, want way, package, tests and target", line, len(columns))
		}
		trials = append(trials, Trial{Way: Breakage(columns[0]), Package: columns[1], Tests: columns[2], Of: columns[3]})
	}
	return trials, nil
}
