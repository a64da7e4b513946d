package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/checksum"
)

// Metrics counts what the webhook does. Its labels have few values: never a
// name, never a namespace.
type Metrics struct {
	admissions *prometheus.CounterVec
	duration   prometheus.Histogram
	fresh      *prometheus.CounterVec
	malformed  *prometheus.CounterVec
}

// NewMetrics makes the webhook's metrics and registers them.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_admissions_total",
			Help: "Admission requests answered, by operation and by what they came to.",
		}, []string{"operation", "outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "configstamp_admission_duration_seconds",
			Help:    "Time from a decoded request to its answer, in seconds, the freshness check included.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}),
		fresh: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_freshness_checks_total",
			Help: "Checks that memory holds what the API server holds, by whether it could be proven in time.",
		}, []string{"proven"}),
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_malformed_requests_total",
			Help: "HTTP requests that were no admission review, by status code.",
		}, []string{"code"}),
	}
	registry.MustRegister(m.admissions, m.duration, m.fresh, m.malformed)
	return m
}

func (m *Metrics) admitted(operation admissionv1.Operation, outcome checksum.Outcome, took time.Duration) {
	switch operation {
	case admissionv1.Create, admissionv1.Update:
	default: // whatever a request says, labels stay few
		operation = "OTHER"
	}
	m.admissions.WithLabelValues(string(operation), string(outcome)).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *Metrics) freshness(proven bool) { m.fresh.WithLabelValues(strconv.FormatBool(proven)).Inc() }

func (m *Metrics) refused(status int) { m.malformed.WithLabelValues(strconv.Itoa(status)).Inc() }
