package lab

import (
	"context"
	"fmt"

	"github.com/configstamp/configstamp/e2e/harness"
)

// Metrics are those of the API server.
func (l *Lab) Metrics(ctx context.Context) (map[string]float64, error) {
	text, err := l.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return harness.ParseMetrics(string(text)), nil
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
		all := harness.SumOf(values, "apiserver_request_total", labels...)
		w.All += all
		w.Refused += all - harness.SumOf(values, "apiserver_request_total", append(labels, `code="2`)...)
	}
	return w, nil
}

// Since are those since earlier ones.
func (w Writes) Since(before Writes) Writes {
	return Writes{All: w.All - before.All, Refused: w.Refused - before.Refused}
}
