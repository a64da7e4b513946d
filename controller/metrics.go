package controller

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/checksum"
)

// Manners of re-admissions, as metric labels.
const (
	rolling   = "rolling"
	recording = "recording"
)

// Metrics counts what the controller does. Its labels have few values: never a
// name, never a namespace.
type Metrics struct {
	readmissions *prometheus.CounterVec
	lost         prometheus.Counter
	observed     prometheus.Counter
	rollouts     *prometheus.CounterVec
	halts        prometheus.Counter
	panics       *prometheus.CounterVec
	leads        atomic.Bool
}

// newMetrics makes the controller's counters and registers them. Each series is
// there from the start: increase() does not see one that comes with its first
// event.
func newMetrics(registry prometheus.Registerer) *Metrics {
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
		rollouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_rollouts_total",
			Help: "Rollouts that were followed to their end: healthy, failed, or unreported (the workload cannot tell).",
		}, []string{"result"}),
		halts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "configstamp_halts_total",
			Help: "Changes that stopped because a rollout failed.",
		}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "configstamp_panics_total",
			Help: "Faults of ours that were caught: in a look at a workload (it is tried again), in the planner of turns, or in reading a workload as it arrives. The webhook counts its own as configstamp_admissions_total{reason=\"panic\"}.",
		}, []string{"in"}),
	}
	for _, in := range []string{inLook, inTurns, inWatch} {
		m.panics.WithLabelValues(in)
	}
	for _, result := range checksum.Labels(checksum.ReadmissionResults) {
		m.readmissions.WithLabelValues(rolling, result)
		m.readmissions.WithLabelValues(recording, result)
	}
	for _, result := range checksum.Labels(checksum.RolloutResults) {
		m.rollouts.WithLabelValues(result)
	}
	registry.MustRegister(m.readmissions, m.lost, m.observed, m.rollouts, m.halts, m.panics)
	return m
}

func (m *Metrics) readmitted(manner string, result checksum.Reason) {
	m.readmissions.WithLabelValues(manner, result.Label()).Inc()
}

// settled counts the end of a rollout.
func (m *Metrics) settled(how checksum.Reason) { m.rollouts.WithLabelValues(how.Label()).Inc() }
