package rollout

import (
	"fmt"
	"time"

	"github.com/configstamp/configstamp/internal/workload"
)

// ForeignHalt is the time that simulations compute with.
const ForeignHalt = foreignHalt

// Check reports a workload that would be on trial for ever.
func (p *Planner) Check() error {
	for _, t := range p.all {
		for _, its := range t.parts {
			if t.gone.IsZero() && t.trial == nil && its.tries() {
				return fmt.Errorf("%s is on trial for %v, and nobody watches it", t.ref, its.change.at)
			}
		}
	}
	return nil
}

// Dump is what is known of open changes, for those who look for a fault.
func (p *Planner) Dump(now time.Time) (text string) {
	for _, c := range p.open {
		text += fmt.Sprintf("%v found %t born %s %+v foreign %t\n", c.at, c.found, c.born.Format(time.TimeOnly), *c.all(), c.foreign)
		for _, its := range c.parts {
			state, over := its.state()
			t := its.track
			text += fmt.Sprintf("  %s state %d over %t waits %d hold %v turn %v trial %t due %s retry %s take %+v needs %v\n",
				t.ref, state, over, its.waits(), t.hold, t.turn, t.trial != nil, t.due.Sub(now), t.retry.Sub(now), its.take, t.needs)
		}
	}
	for _, t := range p.sortedTracks(func(t *track) bool { return t.trial != nil || t.turn != nil }) {
		text += fmt.Sprintf("%s rolls %t turn %v class %d trial %+v\n", t.ref, t.rolls(&p.limits, now), t.turn, t.class, t.trial)
	}
	return text
}

// Granted are the workloads whose turn has come, and that have not taken it yet.
func (p *Planner) Granted() (refs []workload.Ref) {
	for _, t := range p.sortedTracks(func(t *track) bool { return t.turn != nil }) {
		refs = append(refs, t.ref)
	}
	return refs
}

// AtPause reports whether a workload stands at a pause of its own.
func (p *Planner) AtPause(ref workload.Ref) bool {
	r := p.known(ref).trial
	return r != nil && r.standing
}
