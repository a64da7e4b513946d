package lab

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// ParseMetrics reads Prometheus' text: values by name with labels, as printed.
func ParseMetrics(text string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			values[line[:at]] = value
		}
	}
	return values
}

// Metrics are those of the API server.
func (l *Lab) Metrics(ctx context.Context) (map[string]float64, error) {
	text, err := l.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return ParseMetrics(string(text)), nil
}

// Sum adds up a metric over all labels that hold each of parts.
func Sum(values map[string]float64, metric string, parts ...string) (sum float64) {
	for name, value := range values {
		bare, labels, _ := strings.Cut(name, "{")
		matches := bare == metric
		for _, part := range parts {
			matches = matches && strings.Contains(labels, part)
		}
		if matches {
			sum += value
		}
	}
	return sum
}

// Writes are requests that were to change Deployments, their status aside.
type Writes struct{ All, Refused float64 }

// Writes asks the API server how many there were since it started, of everybody.
func (l *Lab) Writes(ctx context.Context) (w Writes, err error) {
	values, err := l.Metrics(ctx)
	if err != nil {
		return w, err
	}
	for _, verb := range []string{"PATCH", "PUT", "APPLY"} {
		labels := []string{`resource="deployments"`, `subresource=""`, `verb="` + verb + `"`}
		all := Sum(values, "apiserver_request_total", labels...)
		w.All += all
		w.Refused += all - Sum(values, "apiserver_request_total", append(labels, `code="2`)...)
	}
	return w, nil
}

// Since are those since earlier ones.
func (w Writes) Since(before Writes) Writes {
	return Writes{All: w.All - before.All, Refused: w.Refused - before.Refused}
}
