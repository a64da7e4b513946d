package controller

import (
	"testing"
	"time"

	"github.com/configstamp/configstamp/controller/internal/throttle"
	"github.com/configstamp/configstamp/internal/workload"
)

// Under overload each try is late, and between two tries a workload stands in line. People
// are told all the same, and metrics show it.
func TestLate_StandingInLineHidesNoFailure(t *testing.T) {
	t.Run("off", func(t *testing.T) { c := newCluster(t); h, refs := changedIn(t, c, 1); hides(t, c, h, refs) })
	t.Run("stepwise", func(t *testing.T) {
		c := newCluster(t)
		h, refs := changedIn(t, c, 1)
		h.stepwise()
		hides(t, c, h, refs)
	})
	t.Run("recording", func(t *testing.T) {
		c := newCluster(t)
		c.write("c", map[string]string{"k": "old"})
		u := c.deploy("d", "c")
		hides(t, c, newHouse(t, c), []workload.Ref{u})
	})
}

func hides(t *testing.T, c *cluster, h *house, refs []workload.Ref) {
	drain := func() {
		for h.queue.Len() > 0 {
			u, _ := h.queue.Get()
			h.queue.Done(u)
		}
	}
	u := refs[0]
	others := []workload.Ref{{Kind: c.kind, Namespace: "shop", Name: "o1"}, {Kind: c.kind, Namespace: "shop", Name: "o2"}}
	said := 0
	for round := range 12 {
		c.away, c.slow = true, func() { h.clock.Step(time.Second) }
		drain()
		if !h.plan.Off() {
			h.next2(t, u)
		}
		h.queue.Add(u)
		h.next(t.Context()) // late
		_, events := h.happened()
		said += len(events)
		h.clock.Step(10 * time.Second)
		for _, o := range others {
			h.permits(func(t *throttle.Throttle) []workload.Ref { t.Begin(o); return nil })
		}
		drain()
		h.queue.Add(u)
		h.next(t.Context()) // stands in line
		if w := scrape(t, h.scraped, "configstamp_waiting_workloads"); round == 11 {
			sum := 0.0
			for _, v := range w {
				sum += v
			}
			if sum == 0 {
				t.Error("it has failed for two minutes and stands in line, and no metric says so")
			}
		}
		for _, o := range others {
			h.permits(func(t *throttle.Throttle) []workload.Ref { return t.End(o, false, h.clock.Now()) })
		}
		h.clock.Step(10 * time.Second)
	}
	if tries := h.queue.NumRequeues(u); tries < 12 || said == 0 || said > 2 {
		t.Errorf("after 12 failures %d tries are known, and people are told %d times", tries, said)
	}
}

// next2 has the turn come.
func (h *house) next2(t *testing.T, u workload.Ref) {
	h.queue.Add(u)
	h.next(t.Context())
	h.clock.Step(time.Minute) // by then it is known whether it is down
	h.cycle(t.Context())
	for h.queue.Len() > 0 {
		x, _ := h.queue.Get()
		h.queue.Done(x)
	}
}
