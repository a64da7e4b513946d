package soak

import (
	"fmt"
	"testing"

	"github.com/configstamp/configstamp/e2e/harness"
)

// calls are what the API server itself has counted of its calls of our
// webhooks: a second opinion.
type calls struct{ made, failed, ignored float64 }

func theirCalls(t *testing.T) calls {
	t.Helper()
	text, err := cluster.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	harness.Must(t, err)
	values := harness.ParseMetrics(string(text))
	sum := func(metric string) float64 { return harness.SumOf(values, metric, `.configstamp.dev"`) }
	return calls{
		made:    sum("apiserver_admission_webhook_admission_duration_seconds_count"),
		failed:  sum("apiserver_admission_webhook_rejection_count"),
		ignored: sum("apiserver_admission_webhook_fail_open_count"),
	}
}

// disagreements are where the API server counted otherwise than we did.
func (c *crowd) disagreements(t *testing.T) []string {
	t.Helper()
	now := theirCalls(t)
	made, failed, ignored := now.made-c.before.made, now.failed-c.before.failed, now.ignored-c.before.ignored
	t.Logf("the API server counted %.0f calls of our webhooks, %.0f that failed, %.0f failures that it ignored", made, failed, ignored)
	var problems []string
	if made < float64(c.tally.count()) {
		problems = append(problems, fmt.Sprintf("the API server called our webhooks %.0f times for %d admissions: some were not asked about", made, c.tally.count()))
	}
	if int(failed) != len(c.tally.failures())+len(c.tally.losses()) {
		problems = append(problems, fmt.Sprintf("the API server counted %.0f calls that failed, we %d admissions", failed, len(c.tally.failures())+len(c.tally.losses())))
	}
	if ignored > 0 {
		problems = append(problems, fmt.Sprintf("the API server ignored %.0f failures, though the policy is Fail", ignored))
	}
	return problems
}
