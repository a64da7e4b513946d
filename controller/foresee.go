package controller

import (
	"slices"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/forecast"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Foresee tells what an edit that somebody is about to make does; false: the caches are not
// full yet. It asks the API server nothing, and may be called at any time, from any
// goroutine, whether this process leads or not.
func (c *Controller) Foresee(edit forecast.Edit) (forecast.Brief, bool) {
	ring := c.keys.Ring()
	if !c.full.Load() || ring == nil {
		return forecast.Brief{}, false
	}
	users := c.index.Users(edit.At.Namespace, edit.At.Source)
	if len(users) == 0 {
		return forecast.Brief{}, true
	}
	slices.SortFunc(users, workload.Ref.Compare)
	q := forecast.Question{
		Edits: []forecast.Edit{edit}, Now: c.options.Clock.Now(), Limits: c.options.Limits, CanRoll: c.index.Len(), Ring: ring,
		Content: func(at rollout.SourceRef) *checksum.Content { return c.sources.Content(at.Namespace, at.Source) },
	}
	q.Limits.Settle = c.options.Settle
	q.Workloads = c.foreseen(users)
	return q.Brief(), true
}

// foreseen are workloads as a forecast wants them.
func (c *Controller) foreseen(users []workload.Ref) []forecast.Workload {
	all := make([]forecast.Workload, 0, len(users))
	uids := make([]string, 0, len(users))
	for _, user := range users {
		s := c.index.Get(user)
		if s == nil {
			continue // it is gone by now
		}
		w := forecast.Workload{
			Ref: user, Policy: c.policy(user, s), References: s.References, Unreadable: s.Fault != "", Records: s.Records, Status: s.Status, Standstill: s.Standstill,
		}
		w.Served, w.Why = c.served(user, s)
		all, uids = append(all, w), append(uids, string(s.UID))
	}
	if !c.leads.Load() {
		return all // only the leader's plan knows of its rolls
	}
	c.planned(func(p *rollout.Plan) {
		for i := range all {
			if last := p.LastRoll(all[i].Ref, uids[i]); last.After(all[i].Status.Current) {
				all[i].Status.Current = last
			}
		}
	})
	return all
}
