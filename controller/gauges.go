package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
)

// gauges tell how things stand at the moment of asking. It is a
// prometheus.Collector.
type gauges struct {
	now   func() time.Time
	leads func() bool
	index *index
	queue *fair
	plan  *plan
	waits *waits
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("configstamp_"+name, help, labels, nil)
}

//nolint:gochecknoglobals // they never change; prometheus.NewDesc makes no constant
var (
	leaderDesc     = desc("leader", "1 while this process leads.")
	workloadsDesc  = desc("workloads", "Workloads that are watched, opted in or not.")
	depthDesc      = desc("queue_depth", "Workloads that wait to be looked at; 0 on a process that does not lead.")
	queueAgeDesc   = desc("queue_age_seconds", "How long the first of the queue has waited to be looked at; 0 on a process that does not lead.")
	changesDesc    = desc("changes", "Changes of sources that are not done, by state: rolling, waiting, halted.", "state")
	unsettledDesc  = desc("unsettled_rollouts", "Rollouts of ours that are under way.")
	heldDesc       = desc("halted_workloads", "Workloads that a halted change holds.")
	waitingDesc    = desc("waiting_workloads", "Workloads with something due that wait, by what they wait for.", "reason")
	waitingAgeDesc = desc("waiting_age_seconds", "How long the first of them has waited for it; 0 when none does.", "reason")
)

// Describe is for prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{leaderDesc, workloadsDesc, depthDesc, queueAgeDesc, changesDesc, unsettledDesc, heldDesc, waitingDesc, waitingAgeDesc} {
		ch <- d
	}
}

// Collect is for prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	tell := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	now := g.now()
	leads, oldest := 0.0, time.Time{}
	if g.leads() {
		leads, oldest = 1, g.queue.oldest()
	}
	tell(leaderDesc, leads)
	tell(workloadsDesc, float64(g.index.count()))
	tell(depthDesc, float64(g.queue.Len()))
	tell(queueAgeDesc, age(oldest, now))
	var n rollout.Counts
	g.plan.ask(func(p *rollout.Plan) { n = p.Counts() })
	tell(changesDesc, float64(n.Rolling), "rolling")
	tell(changesDesc, float64(n.Waiting), "waiting")
	tell(changesDesc, float64(n.Halted), "halted")
	tell(unsettledDesc, float64(n.Unsettled))
	tell(heldDesc, float64(n.Held))
	waiting := g.waits.byLabel()
	for _, label := range checksum.Labels(checksum.Waiting) {
		tell(waitingDesc, float64(waiting[label].count), label)
		tell(waitingAgeDesc, age(waiting[label].since, now), label)
	}
}

// age is how long ago something was, 0 for what never was.
func age(since, now time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since).Seconds())
}
