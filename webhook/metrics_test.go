package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
)

// TestMetrics: admissions are counted by what they came to, with few labels whatever a
// request says.
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
	want := map[string]float64{"CREATE stamped ": 1, "OTHER not-served ": 3}
	if diff := cmp.Diff(want, counted(t, registry, "configstamp_admissions_total")); diff != "" {
		t.Errorf("admissions (-want +got):\n%s", diff)
	}
	for _, name := range []string{"configstamp_admission_duration_seconds", "configstamp_freshness_check_duration_seconds"} {
		if len(counted(t, registry, name)) == 0 {
			t.Errorf("%s has observed nothing", name)
		}
	}
}

// counted gives the series of a metric that have counted anything, by the values
// of their labels.
func counted(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var values []string
			for _, pair := range metric.GetLabel() {
				values = append(values, pair.GetValue())
			}
			if value := metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount()); value > 0 {
				found[strings.Join(values, " ")] = value
			}
		}
	}
	return found
}

// TestReasons: an admission is counted by the first thing that was amiss.
func TestReasons(t *testing.T) {
	for name, want := range map[string]string{
		"create-deployment":     "CREATE stamped ",
		"create-missing-source": "CREATE stamped missing-source",
		"create-missing-key":    "CREATE stamped missing-key",
		"create-without-key":    "CREATE failed no-key",
		"create-oversize":       "CREATE oversize annotations-too-large",
		"create-garbage":        "CREATE unreadable ",
		"policy-unreadable":     "CREATE stamped unreadable-setting",
		"rolling-unproven":      "UPDATE deferred not-proven-fresh",
		"rolling-key-lost":      "UPDATE recorded lost-record",
		"rolling-held":          "UPDATE held missing-source",
		"rolling-observed":      "UPDATE observed observe-mode",
		"undo-of-stamps-alone":  "UPDATE restored foreign-stamps",
	} {
		t.Run(name, func(t *testing.T) {
			handler, request := caseRequest(t, name)
			wantCounted(t, handler, request, want)
		})
	}
	for want, sources := range map[string]*cluster{
		"CREATE failed panic":           {panics: "boom"},
		"CREATE failed sources-unknown": {unproven: errUnproven, unknown: errUnproven},
	} {
		t.Run(want, func(t *testing.T) {
			handler, request := caseRequest(t, "create-deployment")
			sources.serve(handler)
			wantCounted(t, handler, request, want)
		})
	}
}

func wantCounted(t *testing.T, handler *Handler, request *admissionv1.AdmissionRequest, want string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	handler.Metrics = NewMetrics(registry)
	admit(silent(t), t, handler, request)
	if diff := cmp.Diff(map[string]float64{want: 1}, counted(t, registry, "configstamp_admissions_total")); diff != "" {
		t.Errorf("admissions (-want +got):\n%s", diff)
	}
}
