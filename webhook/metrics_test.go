package webhook

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	admissionv1 "k8s.io/api/admission/v1"
)

// TestMetrics: every metric appears under a proper name, and admissions are
// counted by what they came to, with few labels whatever a request says.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	handler, request := caseRequest(t, "create-deployment")
	handler.Metrics = NewMetrics(registry)
	admit(silent(t), t, handler, request)
	request.SubResource = "scale"
	for _, operation := range []admissionv1.Operation{"DELETE", "CONNECT", "any-text-at-all"} {
		request.Operation = operation
		admit(silent(t), t, handler, request)
	}
	post(silent(t), handler, []byte("{}"))

	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP configstamp_admissions_total Admission requests answered, by operation and by what they came to.
# TYPE configstamp_admissions_total counter
configstamp_admissions_total{operation="CREATE",outcome="stamped"} 1
configstamp_admissions_total{operation="OTHER",outcome="not-served"} 3
# HELP configstamp_freshness_checks_total Checks that memory holds what the API server holds, by whether it could be proven in time.
# TYPE configstamp_freshness_checks_total counter
configstamp_freshness_checks_total{proven="true"} 1
# HELP configstamp_malformed_requests_total HTTP requests that were no admission review, by status code.
# TYPE configstamp_malformed_requests_total counter
configstamp_malformed_requests_total{code="400"} 1
`), "configstamp_admissions_total", "configstamp_freshness_checks_total", "configstamp_malformed_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "configstamp_admission_duration_seconds"); n != 1 || err != nil {
		t.Errorf("%d durations, %v", n, err)
	}
}
