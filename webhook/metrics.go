package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/configstamp/configstamp/internal/reason"
)

// Metrics counts what the webhook does. Its labels have few values: never a
// name, never a namespace.
type Metrics struct {
	admissions *prometheus.CounterVec
	duration   prometheus.Histogram
	fresh      *prometheus.CounterVec
	checking   prometheus.Histogram
	malformed  *prometheus.CounterVec
}

// NewMetrics makes the webhook's metrics and registers them. Series on which
// somebody may want to be woken are there from the start: increase() does not see
// one that comes with its first event.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		admissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_admissions_total",
			Help: "Admission requests answered, by operation, outcome and first problem, if any.",
		}, []string{"operation", "outcome", "reason"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "configstamp_admission_duration_seconds",
			Help:    "Time from a decoded request to its answer, with the freshness check.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 3},
		}),
		fresh: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_freshness_checks_total",
			Help: "Checks that the cache is up to date, by whether they succeeded in time.",
		}, []string{"proven"}),
		checking: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "configstamp_freshness_check_duration_seconds",
			Help:    "Duration of a freshness check, most of it the API server's.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}),
		malformed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_malformed_requests_total",
			Help: "HTTP requests that were not an admission review, by status code.",
		}, []string{"code"}),
	}
	for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
		for _, outcome := range []reason.Reason{reason.Stamped, reason.Kept, reason.Restored} {
			m.admissions.WithLabelValues(string(operation), outcome.Label(), reason.NoReason.String())
		}
		for _, why := range []reason.Reason{reason.NoDigestKey, reason.SourcesUnknown, reason.Panicked} {
			m.admissions.WithLabelValues(string(operation), reason.AdmissionFailed.Label(), why.String())
		}
	}
	m.admissions.WithLabelValues(string(admissionv1.Update), reason.Recorded.Label(), reason.NoReason.String())
	m.fresh.WithLabelValues("true")
	m.fresh.WithLabelValues("false")
	m.malformed.WithLabelValues("400")
	registry.MustRegister(m.admissions, m.duration, m.fresh, m.checking, m.malformed)
	return m
}

func (m *Metrics) admitted(operation admissionv1.Operation, answer Answer, took time.Duration) {
	switch operation {
	case admissionv1.Create, admissionv1.Update:
	default: // whatever a request says, labels stay few
		operation = "OTHER"
	}
	m.admissions.WithLabelValues(string(operation), answer.Outcome.Label(), answer.Reason.String()).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *Metrics) freshness(proven bool, took time.Duration) {
	m.fresh.WithLabelValues(strconv.FormatBool(proven)).Inc()
	m.checking.Observe(took.Seconds())
}

// Refused counts a request that is no admission review, by its HTTP status.
func (m *Metrics) Refused(status int) { m.malformed.WithLabelValues(strconv.Itoa(status)).Inc() }
