package warning

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// result is what a review came to, as a metric label.
type result string

const (
	warned     result = "warned"
	quiet      result = "quiet"      // nothing rolls, and nobody needs what is taken away
	notReady   result = "not-ready"  // the caches are not full
	late       result = "late"       // the API server would not have waited
	busy       result = "busy"       // no room for one more
	unreadable result = "unreadable" // no review, or no ConfigMap or Secret
	panicked   result = "panicked"
)

func results() []result { return []result{warned, quiet, notReady, late, busy, unreadable, panicked} }

// Metrics counts reviews.
type Metrics struct {
	reviews  *prometheus.CounterVec
	duration prometheus.Histogram
}

// NewMetrics makes the metrics of impact warnings and registers them.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_impact_reviews_total",
			Help: "Edits that were reviewed for impact warnings; each was allowed.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "configstamp_impact_review_duration_seconds",
			Help:    "Time from a decoded review for impact warnings to its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 3},
		}),
	}
	for _, result := range results() {
		m.reviews.WithLabelValues(string(result))
	}
	registry.MustRegister(m.reviews, m.duration)
	return m
}

func (m *Metrics) reviewed(of result, took time.Duration) {
	m.reviews.WithLabelValues(string(of)).Inc()
	m.duration.Observe(took.Seconds())
}
