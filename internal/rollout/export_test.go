package rollout

import (
	"fmt"
	"time"
)

// Check reports a tally, a slot or a queue that is not what the records say.
func (p *Plan) Check(now time.Time) error {
	tallies, under, waiting := map[*change]tally{}, 0, 0
	for ref, r := range p.records {
		if r.ref != ref {
			return fmt.Errorf("%s has the record of %s", ref, r.ref)
		}
		counts, slot := p.counts(r)
		if slot {
			under++
		}
		if slot != r.slot {
			return fmt.Errorf("%s holds a slot: %t, and it counts %t", ref, slot, r.slot)
		}
		for _, n := range counts {
			t := tallies[n.change]
			t.add(n.tally, 1)
			tallies[n.change] = t
		}
		if w := r.waits; w != nil {
			waiting++
			if asleep := w.queue == nil; asleep != (!w.granted.IsZero() || w.due.After(now)) {
				return fmt.Errorf("%s stands in a queue: %t; granted %s, due %s", ref, !asleep, w.granted, w.due)
			}
		}
	}
	if under != p.under || waiting != p.waiting {
		return fmt.Errorf("%d slots are taken and %d wait, and %d and %d are counted", under, waiting, p.under, p.waiting)
	}
	for _, c := range p.open {
		if c.tally != tallies[c] {
			return fmt.Errorf("change %d of %v: %+v, want %+v", c.number, c.sources(), c.tally, tallies[c])
		}
		for _, g := range c.groups {
			var sum tally
			for its := range g.changes {
				sum.add(its.tally, 1)
			}
			if g.tally != sum {
				return fmt.Errorf("group of %v: %+v, want %+v", c.sources(), g.tally, sum)
			}
		}
	}
	return nil
}
