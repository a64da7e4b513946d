package observability

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The files that this package holds together.
const (
	metricsFile         = "../../docs/reference.md"
	troubleshootingFile = "../../docs/troubleshooting.md"
	alertsFile          = "../../deploy/chart/files/alerts.yaml"
	dashboardFile       = "../../deploy/chart/files/dashboard.json"
	rulesTestFile       = "../../deploy/chart/tests/alerts_test.yaml"
)

// metric is what docs/reference.md tells of one, which cmd/configstamp has compared
// with real processes.
type metric struct {
	kind   string
	labels map[string][]string // values by name; none: any
}

var code = regexp.MustCompile("`([^`]+)`")

// knownMetrics reads docs/reference.md.
func knownMetrics(t *testing.T) map[string]metric {
	t.Helper()
	known := map[string]metric{"up": {kind: "gauge"}}
	for line := range strings.Lines(read(t, metricsFile)) {
		if list, found := strings.CutPrefix(line, "Beside these,"); found {
			_, list, _ = strings.Cut(list, "Alerts and the dashboard use")
			for _, name := range code.FindAllStringSubmatch(list, -1) {
				kind := "gauge"
				if strings.HasSuffix(name[1], "_total") {
					kind = "counter"
				}
				known[name[1]] = metric{kind: kind}
			}
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !strings.HasPrefix(cells[0], "| `configstamp_") {
			continue
		}
		m := metric{kind: cells[1], labels: map[string][]string{}}
		for part := range strings.SplitSeq(cells[2], "; ") {
			label, values, listed := strings.Cut(part, ": ")
			if label = strings.Trim(label, "` "); label == "" {
				continue
			}
			if slices.Contains(targetLabels(), label) { // Prometheus calls it so, unless honorLabels is set
				label = "exported_" + label
			}
			if m.labels[label] = nil; listed {
				m.labels[label] = strings.Split(values, ", ")
			}
		}
		name := strings.Trim(cells[0], "|` ")
		if m.kind != "histogram" {
			known[name] = m
			continue
		}
		known[name+"_bucket"] = metric{"counter", map[string][]string{"le": nil}}
		known[name+"_sum"], known[name+"_count"] = metric{kind: "counter"}, metric{kind: "counter"}
	}
	if len(known) < 30 {
		t.Fatalf("%s tells of %d metrics: its form is not what this test reads", metricsFile, len(known))
	}
	return known
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
