package observability

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// targetLabels are those that Prometheus and its operator add to whatever they
// read.
func targetLabels() []string {
	return []string{"job", "instance", "namespace", "pod", "container", "cluster"}
}

// problems tells what is wrong with a query: it cannot be parsed, asks for a
// metric, a label or a value that there is not, or takes a counter for a gauge, or
// the reverse.
func problems(query string, known map[string]metric) (found []string) {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	parser.Inspect(expression, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			m, exists := known[n.Name]
			if !exists {
				report("there is no metric %q", n.Name)
				return nil
			}
			for _, matcher := range n.LabelMatchers {
				if problem := m.misses(matcher); problem != "" {
					report("%s: %s", n.Name, problem)
				}
			}
			if rated := isRated(path); rated != (m.kind == "counter") && !counts(path) {
				report("%s is a %s; rate and increase are for counters alone, and for each of them", n.Name, m.kind)
			}
		case *parser.AggregateExpr:
			if missing := unknownLabels(n.Grouping, n.Expr, known); len(missing) > 0 {
				report("by %v: nothing in %s has that label", missing, n.Expr)
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				if missing := unknownLabels(n.VectorMatching.MatchingLabels, n, known); len(missing) > 0 {
					report("on %v: nothing in %s has that label", missing, n)
				}
			}
		}
		return nil
	})
	return found
}

// misses says what is wrong with a matcher, "" if nothing is.
func (m metric) misses(matcher *labels.Matcher) string {
	if matcher.Name == labels.MetricName || slices.Contains(targetLabels(), matcher.Name) {
		return ""
	}
	values, has := m.labels[matcher.Name]
	switch {
	case !has:
		return fmt.Sprintf("it has no label %q", matcher.Name)
	case values == nil:
		return ""
	case matcher.Type == labels.MatchRegexp:
		for alternative := range strings.SplitSeq(matcher.Value, "|") {
			if !slices.Contains(values, alternative) {
				return fmt.Sprintf("%s is never %q", matcher.Name, alternative)
			}
		}
	case matcher.Value != "" && !slices.Contains(values, matcher.Value):
		return fmt.Sprintf("%s is never %q", matcher.Name, matcher.Value)
	}
	return ""
}

// isRated reports whether a selector is an argument of rate or increase.
func isRated(path []parser.Node) bool {
	return slices.ContainsFunc(path, func(node parser.Node) bool {
		call, is := node.(*parser.Call)
		return is && slices.Contains([]string{"rate", "increase"}, call.Func.Name)
	})
}

// counts reports whether a selector's value does not matter: it is counted, or
// matched with.
func counts(path []parser.Node) bool {
	return slices.ContainsFunc(path, func(node parser.Node) bool {
		call, is := node.(*parser.Call)
		return is && call.Func.Name == "changes"
	})
}

// unknownLabels are those of some labels that no selector in an expression has.
func unknownLabels(names []string, in parser.Node, known map[string]metric) (missing []string) {
	there := map[string]bool{}
	for _, label := range targetLabels() {
		there[label] = true
	}
	parser.Inspect(in, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			for label := range known[selector.Name].labels {
				there[label] = true
			}
		}
		return nil
	})
	for _, name := range names {
		if !there[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

// TestTheCheckOfQueriesFindsFaults keeps the checks below from passing by looking
// at nothing.
func TestTheCheckOfQueriesFindsFaults(t *testing.T) {
	known := knownMetrics(t)
	for query, want := range map[string]string{
		`sum(configstamp_leader)`: "",
		`sum by (reason) (configstamp_waiting_workloads{reason="turn"})`:                                 "",
		`rate(configstamp_admissions_total{outcome="failed", reason="panic"}[5m])`:                       "",
		`histogram_quantile(0.9, sum by (le) (rate(configstamp_admission_duration_seconds_bucket[5m])))`: "",
		`rate(process_cpu_seconds_total[5m]) and on (instance) configstamp_info`:                         "",
		`sum by (exported_namespace) (configstamp_leader)`:                                               "by [exported_namespace]",
		`sum(configstamp_leader`:                               "parse error",
		`sum(configstamp_leaders)`:                             `no metric "configstamp_leaders"`,
		`configstamp_admission_duration_seconds`:               "no metric",
		`configstamp_leader{state="halted"}`:                   `no label "state"`,
		`configstamp_changes{state="stopped"}`:                 `state is never "stopped"`,
		`configstamp_waiting_workloads{reason=~"turn|never"}`:  `reason is never "never"`,
		`sum by (state) (configstamp_leader)`:                  "by [state]",
		`sum by (le) (rate(configstamp_admissions_total[5m]))`: "by [le]",
		`configstamp_leader and on (reason) configstamp_info`:  "on [reason]",
		`configstamp_halts_total > 0`:                          "counter",
		`increase(configstamp_changes[5m])`:                    "gauge",
	} {
		found := strings.Join(problems(query, known), "; ")
		if want == "" && found != "" || !strings.Contains(found, want) {
			t.Errorf("%s: %q, want %q", query, found, want)
		}
	}
}
