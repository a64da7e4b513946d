package pins

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what becomes of Pods that name snapshots.
type Metrics struct {
	pods     *prometheus.CounterVec
	duration prometheus.Histogram
	refused  func(status int)
}

// NewMetrics makes the metrics of Pods and registers them. refused counts what is no review, by its HTTP status.
func NewMetrics(registry prometheus.Registerer, refused func(status int)) *Metrics {
	p := &Metrics{
		refused: refused,
		pods: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_pod_pins_total",
			Help: "New Pods whose template names snapshots, by whether all, some or none were used. Only with --pins.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "configstamp_pod_pin_duration_seconds",
			Help:    "Time from a decoded request for a new Pod to its answer. Only with --pins.",
			Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .1, .25, .5, 1},
		}),
	}
	for _, result := range []string{podPinned, podPartly, podUnpinned} {
		p.pods.WithLabelValues(result)
	}
	registry.MustRegister(p.pods, p.duration)
	return p
}

func (p *Metrics) answered(result string, took time.Duration) {
	p.pods.WithLabelValues(result).Inc()
	p.duration.Observe(took.Seconds())
}
