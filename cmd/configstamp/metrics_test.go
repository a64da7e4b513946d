package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/configstamp/configstamp/internal/reason"
)

// TestReferenceOfMetrics compares docs/reference.md with what the two processes
// expose, and has Prometheus' linter read that.
func TestReferenceOfMetrics(t *testing.T) {
	found := map[string]*metric{}
	for _, name := range []string{"webhook", "controller"} {
		for _, m := range exposed(t, name) {
			if known := found[m.name]; known != nil {
				known.merge(m)
			} else {
				found[m.name] = m
			}
		}
	}
	path := filepath.Join("..", "..", "docs", "reference.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := between(t, path, string(document), "metrics", table(found))
	for name, of := range map[string]reason.Metrics{
		"admissions": reason.AdmissionOutcomes, "reasons": reason.AdmissionReasons, "waits": reason.Waiting,
		"readmissions": reason.ReadmissionResults, "rollouts": reason.RolloutResults,
	} {
		text = between(t, path, text, name, labelTable(of))
	}
	switch {
	case text == string(document):
	case *update:
		write(t, path, []byte(text))
	default:
		t.Errorf("%s tells of other metrics than there are: make generate writes them. There are:\n%s", path, table(found))
	}
}

// metric is what one process, or both, expose under a name.
type metric struct {
	name, kind, help string
	labels           map[string]map[string]bool // values by name
	processes        []string
}

func (m *metric) merge(other *metric) {
	m.processes = append(m.processes, other.processes...)
	for label, values := range other.labels {
		if m.labels[label] == nil {
			m.labels[label] = map[string]bool{}
		}
		maps.Copy(m.labels[label], values)
	}
}

var (
	sample = regexp.MustCompile(`^([a-z0-9_]+?)(_bucket|_sum|_count)?(?:\{(.*)\})? `)
	pair   = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// exposed are the metrics that a process exposes, before anything has happened.
func exposed(t *testing.T, process string) map[string]*metric {
	t.Helper()
	certificate, trust := certificateFiles(t)
	args := append([]string{process, "--metrics-address=127.0.0.1:0", "--health-address=127.0.0.1:0", "--metrics-tls", "--secret-provider-classes", "--pins"}, certificate...)
	more := map[string][]string{
		"webhook":    {"--address=127.0.0.1:0"},
		"controller": {"--impact-address=127.0.0.1:0"},
	}
	served := start(t, 3, append(args, more[process]...)...)
	_, text := get(t, trust, "https://"+served["metrics"]+"/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%s: promlint: %v %v", process, problems, err)
	}
	found := map[string]*metric{}
	var last *metric // samples follow their HELP and TYPE
	for line := range strings.Lines(text) {
		switch fields := strings.SplitN(strings.TrimSpace(line), " ", 4); fields[1] {
		case "HELP":
			last = &metric{name: fields[2], help: fields[3], labels: map[string]map[string]bool{}, processes: []string{process}}
			found[last.name] = last
		case "TYPE":
			last.kind = fields[3]
		default:
			match := sample.FindStringSubmatch(line)
			if match == nil || last == nil || match[1] != last.name {
				t.Fatalf("%s: a sample that cannot be read: %s", process, line)
			}
			for _, one := range pair.FindAllStringSubmatch(match[3], -1) {
				if last.labels[one[1]] == nil {
					last.labels[one[1]] = map[string]bool{}
				}
				last.labels[one[1]][one[2]] = true
			}
		}
	}
	return found
}

// ours tells our own metrics from those of the libraries.
func ours(name string) bool { return strings.HasPrefix(name, "configstamp_") }

// used are those of the libraries that alerts and the dashboard ask for.
func used() []string {
	return []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds", "go_memstats_heap_inuse_bytes", "go_goroutines"}
}

// table is how docs/reference.md tells of metrics.
func table(found map[string]*metric) string {
	var text strings.Builder
	text.WriteString("| metric | type | labels, with their values from the start | meaning |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := found[name]
		if !ours(name) {
			continue
		}
		var labels []string
		for _, label := range slices.Sorted(maps.Keys(m.labels)) {
			switch values := slices.Sorted(maps.Keys(m.labels[label])); {
			case label == "le": // of a histogram
			case label == "version", label == "namespace", name == "configstamp_api_requests_total": // any
				labels = append(labels, "`"+label+"`")
			default:
				labels = append(labels, "`"+label+"`: "+strings.TrimPrefix(strings.Join(values, ", "), ", "))
			}
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", name, m.kind, strings.Join(labels, "; "), m.help)
	}
	text.WriteString("\nBeside these, those of Prometheus' library for Go: `go_*`, `process_*`, `promhttp_*`. Alerts and the dashboard use")
	for _, name := range used() {
		if m := found[name]; m == nil || len(m.processes) != 2 {
			continue // the checks of alerts and dashboard will miss it
		}
		text.WriteString(" `" + name + "`")
	}
	return text.String() + ".\n"
}

// labelTable returns what the values of a label mean. The table of events has the
// sentence of a reason that has an event. A list after the table of values refers to
// it by the code, where that is not the value itself.
func labelTable(of reason.Metrics) string {
	sentences, codes := map[string][]string{}, map[string][]string{}
	for _, row := range reason.Rows() {
		label := row.Label
		if of == reason.AdmissionReasons {
			label = row.Code
		}
		switch {
		case row.In&of == 0:
		case row.Event == "":
			sentences[label] = append(sentences[label], sentence(row))
		default:
			codes[label] = append(codes[label], "`"+row.Code+"`")
		}
	}
	var text strings.Builder
	if len(sentences) > 0 {
		text.WriteString("| value | meaning |\n|---|---|\n")
	}
	var events []string
	for _, label := range reason.Labels(of) {
		if found := sentences[label]; found != nil {
			fmt.Fprintf(&text, "| `%s` | %s |\n", label, strings.Join(found, ", "))
		}
		if found := strings.Join(codes[label], ", "); found == "`"+label+"`" {
			events = append(events, found)
		} else if found != "" {
			events = append(events, "`"+label+"` ("+found+")")
		}
	}
	if len(events) > 0 {
		fmt.Fprintf(&text, "\nCodes of [events](#events): %s.\n", strings.Join(events, ", "))
	}
	return text.String()
}

// sentence is how the documentation writes that of a reason.
func sentence(row reason.Row) string {
	return strings.NewReplacer("{user}", "", "{uses}", "", "{when}", "", "{", "*", "}", "*").Replace(row.Sentence)
}
