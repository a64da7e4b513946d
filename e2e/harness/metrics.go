package harness

import "strings"

func metricMatches(name, metric string, parts []string) bool {
	if bare, _, _ := strings.Cut(name, "{"); bare != metric {
		return false
	}
	for _, part := range parts {
		if !strings.Contains(name, part) {
			return false
		}
	}
	return true
}
