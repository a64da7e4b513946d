package controller

import "github.com/prometheus/client_golang/prometheus"

// Results and manners of re-admissions, as metric labels.
const (
	rolling   = "rolling"
	recording = "recording"

	resultDone     = "done"     // the answer is true
	resultAway     = "away"     // it is not: the webhook was not called, or knew older content
	resultFailed   = "failed"   // the API server refused or was not there
	resultOversize = "oversize" // our annotations do not fit
	resultBlocked  = "blocked"  // another webhook would ride along
)

// Metrics counts what the controller does. Its labels have few values: never a
// name, never a namespace.
type Metrics struct {
	readmissions *prometheus.CounterVec
	lost         prometheus.Counter
	observed     prometheus.Counter
	leader       prometheus.Gauge
	workloads    prometheus.GaugeFunc
	queued       prometheus.GaugeFunc
	rollouts     *prometheus.CounterVec
	halts        prometheus.Counter
}

// newMetrics makes the controller's metrics and registers them.
func newMetrics(registry prometheus.Registerer, workloads, queued func() int, steps func() counts) *Metrics {
	gauge := func(name, help string, value func() int) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	m := &Metrics{
		readmissions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_readmissions_total",
			Help: "Empty patches sent, by manner (rolling, recording) and by what came of them.",
		}, []string{"manner", "result"}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "configstamp_unverifiable_stamps_total",
			Help: "Values on record that could not be compared any more and were recorded anew.",
		}),
		observed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "configstamp_observed_changes_total",
			Help: "Changes that a workload would have rolled out for, but for mode: observe.",
		}),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "configstamp_leader",
			Help: "1 while this process leads.",
		}),
		workloads: gauge("configstamp_workloads", "Workloads that are watched, opted in or not.", workloads),
		queued:    gauge("configstamp_queue_depth", "Workloads that wait to be looked at; on a process that does not lead, those that have waited for it to.", queued),
	}
	m.rollouts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "configstamp_rollouts_total",
		Help: "Rollouts that were followed to their end: healthy, failed, or unreported (the workload cannot tell).",
	}, []string{"result"})
	m.halts = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "configstamp_halts_total",
		Help: "Changes that stopped because a rollout failed.",
	})
	state := func(name string, value func(counts) int) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "configstamp_changes", Help: "Changes of sources that are not done, by state: rolling, waiting, halted.",
			ConstLabels: prometheus.Labels{"state": name},
		}, func() float64 { return float64(value(steps())) })
	}
	registry.MustRegister(m.readmissions, m.lost, m.observed, m.leader, m.workloads, m.queued, m.rollouts, m.halts,
		state("rolling", func(n counts) int { return n.rolling }),
		state("waiting", func(n counts) int { return n.waiting }),
		state("halted", func(n counts) int { return n.halted }),
		gauge("configstamp_unsettled_rollouts", "Rollouts of ours that are under way.", func() int { return steps().unsettled }),
		gauge("configstamp_halted_workloads", "Workloads that a halted change holds.", func() int { return steps().held }))
	return m
}

func (m *Metrics) readmitted(manner, result string) {
	m.readmissions.WithLabelValues(manner, result).Inc()
}

// settled counts the end of a rollout.
func (m *Metrics) settled(how condition) {
	switch how {
	case healthy:
		m.rollouts.WithLabelValues("healthy").Inc()
	case failed:
		m.rollouts.WithLabelValues("failed").Inc()
	case mute:
		m.rollouts.WithLabelValues("unreported").Inc()
	case underWay:
	}
}
