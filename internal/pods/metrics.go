package pods

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/internal/podtruth"
	"github.com/configstamp/configstamp/internal/shortlist"
)

// Metrics tells how many pods are in each state. It is a prometheus.Collector.
type Metrics struct {
	Room *Room
	// Names are the namespaces that have series of their own; nil: there are none, and all
	// pods are summed.
	Names func() shortlist.Names
}

// Describe is for prometheus.Collector.
func (m Metrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect is for prometheus.Collector.
func (m Metrics) Collect(ch chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("configstamp_pods", "Pods of opted-in namespaces that use sources which count, by what they really have: current, old, mixed, unknown. "+
		"Only with --pods; 0 on a process that does not lead. namespace is empty without --namespace-metrics.", []string{"namespace", "state"}, nil)
	gauge := func(value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	var states []string
	for _, state := range podtruth.States() {
		states = append(states, state.String())
	}
	counts := m.Room.Cells()
	if m.Names != nil {
		m.Names().Sum(counts, states, gauge)
		return
	}
	sums := map[string]int{}
	for cell, n := range counts {
		sums[cell.State] += n
	}
	for _, state := range states {
		gauge(float64(sums[state]), "", state)
	}
}

// Cells are the pods of the last count, by namespace and state.
func (r *Room) Cells() shortlist.Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	cells := shortlist.Counts{}
	for namespace, of := range r.counts {
		for state, n := range of {
			cells.Add(namespace, podtruth.State(state).String(), n)
		}
	}
	return cells
}
