package collect

import "github.com/prometheus/client_golang/prometheus"

// What came of collecting a snapshot.
const (
	resultDeleted = "deleted"
	resultFailed  = "failed"
)

type metrics struct {
	collected *prometheus.CounterVec
	lost      prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{
		collected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_snapshots_collected_total",
			Help: "Snapshots that nothing names any more: deleted, or failed to be. Only with --pins.",
		}, []string{"result"}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "configstamp_snapshots_lost_total",
			Help: "Snapshots that were gone while something named them, and could not be made again, as their sources hold something else. Only with --pins.",
		}),
	}
	m.collected.WithLabelValues(resultDeleted)
	m.collected.WithLabelValues(resultFailed)
	if registry != nil {
		registry.MustRegister(m.collected, m.lost)
	}
	return m
}
