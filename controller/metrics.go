package controller

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Manners of re-admissions, as metric labels.
const (
	rolling   = "rolling"
	recording = "recording"
	returning = "returning"
)

// Metrics counts what the controller does. Its labels have few values: never a name, never a
// namespace.
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
	opts := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "configstamp_" + name, Help: help}
	}
	m := &Metrics{
		readmissions: prometheus.NewCounterVec(opts("readmissions_total", "Empty patches sent."), []string{"manner", "result"}),
		lost:         prometheus.NewCounter(opts("unverifiable_stamps_total", "Checksums that could not be compared, and were recorded again.")),
		observed:     prometheus.NewCounter(opts("observed_changes_total", "Changes for which a workload would have rolled out, but its mode was observe.")),
		rollouts:     prometheus.NewCounterVec(opts("rollouts_total", "Rollouts that were followed to their end."), []string{"result"}),
		halts:        prometheus.NewCounter(opts("halts_total", "Changes that stopped because a rollout failed.")),
		panics:       prometheus.NewCounterVec(opts("panics_total", "Panics that were caught, by place. The webhook counts its own as configstamp_admissions_total{reason=\"panic\"}."), []string{"in"}),
	}
	for _, in := range []string{inLook, inTurns, inWatch, inFindings, inReport} {
		m.panics.WithLabelValues(in)
	}
	for _, result := range reason.Labels(reason.ReadmissionResults) {
		m.readmissions.WithLabelValues(rolling, result)
		m.readmissions.WithLabelValues(recording, result)
		m.readmissions.WithLabelValues(returning, result)
	}
	for _, result := range reason.Labels(reason.RolloutResults) {
		m.rollouts.WithLabelValues(result)
	}
	registry.MustRegister(m.readmissions, m.lost, m.observed, m.rollouts, m.halts, m.panics)
	return m
}

func (m *Metrics) readmitted(manner string, result reason.Reason) {
	m.readmissions.WithLabelValues(manner, result.Label()).Inc()
}

// gauges tell how things stand at the moment of asking. It is a
// prometheus.Collector.
type gauges struct{ *Controller }

// Describe is for prometheus.Collector.
func (g gauges) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, ch) }

// Collect is for prometheus.Collector.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(name, help string, labels ...string) func(value float64, values ...string) {
		desc := prometheus.NewDesc("configstamp_"+name, help, labels, nil)
		return func(value float64, values ...string) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, values...)
		}
	}
	now := g.options.Clock.Now()
	leads, oldest := 0.0, time.Time{}
	if g.metrics.leads.Load() {
		leads, oldest = 1, g.line.Oldest()
	}
	gauge("leader", "1 while this process leads.")(leads)
	gauge("workloads", "Workloads that are watched, opted in or not.")(float64(g.index.Len()))
	gauge("queue_depth", "Workloads in the queue; 0 on a process that does not lead.")(float64(g.line.Len()))
	gauge("queue_age_seconds", "How long the first workload of the queue has waited.")(age(oldest, now))
	permits := 0
	g.permits(func(t *throttle.Throttle) []workload.Ref { permits = t.Permits(); return nil })
	gauge("readmission_permits", "Re-admissions that may be under way at once: --workers, or fewer while many time out.")(float64(permits))
	var n rollout.Counts
	g.planned(func(p *rollout.Planner) { n = p.Counts() })
	changes := gauge("changes", "Changes that are not done, by state.", "state")
	changes(float64(n.Rolling), "rolling")
	changes(float64(n.Waiting), "waiting")
	changes(float64(n.Halted), "halted")
	gauge("unsettled_rollouts", "configstamp's rollouts that are under way.")(float64(n.Unsettled))
	gauge("halted_workloads", "Workloads that a halted change holds.")(float64(n.Held))
	waiting := g.waits.Tally()
	workloads := gauge("waiting_workloads", "Waiting workloads, by reason.", "reason")
	ages := gauge("waiting_age_seconds", "How long the first of these workloads has waited.", "reason")
	for _, label := range reason.Labels(reason.Waiting) {
		workloads(float64(waiting[label].Count), label)
		ages(age(waiting[label].Since, now), label)
	}
	gauge("pinned_stale_seconds", "How long the workload with the oldest content has kept it, by pins or an undo.")(age(g.waits.Older.Oldest(), now))
}

// age is how long ago something was, 0 for what never was.
func age(since, now time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since).Seconds())
}
