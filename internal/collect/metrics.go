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
			Help: "Unused snapshots: deleted, or not. Only with --pins.",
		}, []string{"result"}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "configstamp_snapshots_lost_total",
			Help: "Snapshots in use that were deleted and cannot be created again. Only with --pins.",
		}),
	}
	m.collected.WithLabelValues(resultDeleted)
	m.collected.WithLabelValues(resultFailed)
	if registry != nil {
		registry.MustRegister(m.collected, m.lost)
	}
	return m
}
