package controller

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/shortlist"
	"github.com/configstamp/configstamp/internal/waiting"
	"github.com/configstamp/configstamp/internal/workload"
)

// rollingState is the state of workloads that roll. Another change may wait for them as well.
const rollingState = "rolling"

// counted is how many workloads of a namespace roll, and wait in each state.
func counted(waits waiting.Tally, rolling map[string]int) map[shortlist.Cell]int {
	counts := map[shortlist.Cell]int{}
	for line, queued := range waits {
		counts[shortlist.Cell{Namespace: line.Namespace, State: line.State}] += queued.Count
	}
	for namespace, n := range rolling {
		counts[shortlist.Cell{Namespace: namespace, State: rollingState}] += n
	}
	return counts
}

// bySpace tells of the namespaces with series of their own, which it chooses before, and of
// the others together. A process that does not lead chooses none.
func (g gauges) bySpace(counts map[shortlist.Cell]int, now time.Time, set func(value float64, labels ...string)) {
	if g.metrics.leads.Load() {
		needs := g.servedIn()
		for cell, n := range counts {
			need := needs[cell.Namespace]
			need.Told += n
			needs[cell.Namespace] = need
		}
		g.spaces.Choose(needs, now)
	}
	states := []string{rollingState}
	for _, state := range checksum.States() {
		states = append(states, state.Label)
	}
	g.spaces.Names().Sum(counts, states, func(label, state string, sum int) { set(float64(sum), label, state) })
}

// servedIn counts the workloads that are served, by namespace. It asks for each outside of the
// lock of the index.
func (c *Controller) servedIn() map[string]shortlist.Need {
	type known struct {
		user workload.Ref
		s    *Workload
	}
	all := make([]known, 0, c.index.Count(nil))
	c.index.Each(func(user workload.Ref, s *Workload) { all = append(all, known{user, s}) })
	needs := map[string]shortlist.Need{}
	for _, one := range all {
		if served, _ := c.served(one.user, one.s); served {
			need := needs[one.user.Namespace]
			need.Served++
			needs[one.user.Namespace] = need
		}
	}
	return needs
}
