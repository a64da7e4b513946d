package controller

import (
	"slices"

	"github.com/configstamp/configstamp/internal/impact"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// Foresee tells what an edit that somebody is about to make does; false: the caches are not
// full yet. It asks the API server nothing, and may be called at any time, from any
// goroutine, whether this process leads or not.
func (c *Controller) Foresee(edit impact.Edit) (answer impact.Answer, ready bool) {
	q := impact.Question{Edits: []impact.Edit{edit}, Now: c.options.Clock.Now(), Limits: c.options.Limits, CanRoll: c.index.Len(), Ring: c.keys.Ring(), Content: lookup{c}.Content}
	if !c.full.Load() || q.Ring == nil {
		return answer, false
	}
	refs := c.index.Using(edit.At.Namespace, edit.At.Source)
	slices.SortFunc(refs, workload.Ref.Compare)
	q.Workloads = c.foreseen(refs)
	q.TakeAsRecorded() // who reaches our port could test guesses otherwise
	return q.Answer(), true
}

// foreseen are workloads as a forecast wants them.
func (c *Controller) foreseen(refs []workload.Ref) []impact.Workload {
	all := make([]impact.Workload, 0, len(refs)) // they are large, and garbage is collected early here
	for _, ref := range refs {
		s := c.index.Get(ref)
		if s == nil {
			continue // it is gone by now
		}
		w := impact.Workload{Ref: ref, Policy: c.policy(ref, s), References: s.References, Unreadable: s.Fault != "", Unprobed: s.Unprobed, Records: s.Records, Status: s.Status}
		if w.Served, w.Why = c.served(ref, s); c.leads.Load() { // else nobody here knows of rolls that a status does not tell
			c.planned(func(p *rollout.Planner) {
				if last := p.LastRoll(ref, string(s.UID)); last.After(w.Status.Current) {
					w.Status.Current = last
				}
			})
		}
		all = append(all, w)
	}
	return all
}
