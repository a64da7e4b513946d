package rollout

import (
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// Looked tells whether a workload with changed sources may roll now; else what it
// waits for. What was granted before and is held now, is given back.
func (p *Plan) Looked(ref workload.Ref, f *Facts, now time.Time) Verdict {
	if why := f.Barred(); why != checksum.NoReason {
		p.Withdraw(ref, now)
		settles := p.Settles(ref, f.Review.Missing, now)
		return Verdict{Why: why, Settles: settles > 0, Wait: settles}
	}
	var settles time.Duration // how long the last of its sources has to settle yet
	for _, source := range f.Review.Untrue {
		settles = max(settles, p.settling.wait(SourceRef{ref.Namespace, source}, now))
	}
	if held := p.held(ref, f, now); held.Why != checksum.NoReason {
		p.Withdraw(ref, now)
		if held.Settles = settles > 0; held.Settles {
			held.Wait = settles
		}
		return held
	}
	if p.Off() {
		if settles > 0 {
			return Verdict{Settles: true, Wait: settles}
		}
		return Verdict{Do: Roll}
	}
	return p.inTurn(ref, f, settles, now)
}

// Settles is how long the last of some sources has to settle yet: one that is missing may
// be about to be put back.
func (p *Plan) Settles(ref workload.Ref, missing []checksum.Finding, now time.Time) (wait time.Duration) {
	for _, finding := range missing {
		wait = max(wait, p.settling.wait(SourceRef{ref.Namespace, finding.Source}, now))
	}
	return wait
}

// Barred tells what keeps a workload from rolling at any time: something that it requires is
// missing, or a setting cannot be read. NoReason: nothing does.
func (f *Facts) Barred() checksum.Reason {
	switch {
	case len(f.Review.Missing) > 0:
		return f.Review.Missing[0].Reason
	case !f.Review.MayRoll() || len(f.Policy.Faults) > 0:
		return checksum.UnreadableSetting
	}
	return checksum.NoReason
}

// Held is the setting that holds a workload, and until when; of NoReason when none does.
// last is our own last roll of it.
func (f *Facts) Held(last, now time.Time) checksum.Hold {
	if f.Policy.Observe {
		return checksum.Hold{Reason: checksum.ObserveMode}
	}
	current := f.Status.Current // as its status tells, and no sooner than our own last roll
	if last.After(current) {
		current = last
	}
	if hold, holds := f.Policy.HoldAt(now, current); holds {
		return hold
	}
	return checksum.Hold{}
}

// held is what holds a workload, of settings and the pace of its sources.
func (p *Plan) held(ref workload.Ref, f *Facts, now time.Time) (held Verdict) {
	if hold := f.Held(p.LastRoll(ref, f.UID), now); hold.Reason != checksum.NoReason {
		if held = (Verdict{Why: hold.Reason, Hold: hold}); !hold.Until.IsZero() {
			held.Wait = hold.Until.Sub(now)
		}
		return held
	}
	if f.Policy.MinInterval > 0 {
		return Verdict{}
	}
	if wait := p.Slowed(ref, f.UID, now); wait > 0 {
		return Verdict{Why: checksum.Paced, Wait: wait}
	}
	return Verdict{}
}

// inTurn has a workload wait for its turn, or tells that it has come.
func (p *Plan) inTurn(ref workload.Ref, f *Facts, settles time.Duration, now time.Time) Verdict {
	phase, wait, verdict := p.beforeTurn(ref, f, now)
	if verdict.Do != Nothing || verdict.Retry {
		return verdict
	}
	rolls, calm, stands := phase == workload.Rolling, now.Sub(f.Calm), now.Sub(f.Since)
	if phase == workload.Suspended {
		rolls, stands = true, 0
	}
	fell := phase == workload.RolledOut && f.Relapsed && calm < CalmAfter
	if fell {
		wait = CalmAfter - calm
	}
	order := unordered
	if f.Policy.Order.Given {
		order = f.Policy.Order.Place
	}
	r := p.of(ref)
	lacks := rolls && stands >= unhealthyAfter || phase == workload.Failed
	w := p.wait(r, waiter{
		ref: ref, sources: f.Review.Untrue, records: f.Records, due: now.Add(settles),
		mute:    phase == workload.Unreported && f.Status.Waits != "",
		silent:  phase == workload.Unreported && f.Status.Waits == "",
		level:   f.Status.Available,
		busy:    rolls && stands < unhealthyAfter || fell,
		last:    lacks,
		down:    lacks && f.Status.Wanted > 0 && f.empty(now) && !r.broken(),
		careful: !f.Status.Gentle, order: order, size: f.Status.Wanted,
	}, now)
	if settles > 0 {
		return Verdict{Settles: true, Wait: settles}
	}
	if !w.granted.IsZero() {
		return Verdict{Do: Roll}
	}
	verdict = Verdict{Why: checksum.Turn, Wait: wait, Since: w.since}
	for _, c := range w.on {
		switch {
		case c.halted != workload.Ref{}: // while it is busy, another may wait for it that could end the halt
			verdict.Why, verdict.Halted = checksum.Halted, c.halted
			if by := p.records[c.halted]; by != nil {
				verdict.HaltedWhy = by.whyStops(c)
			}
		case c.foreign && verdict.Halted == workload.Ref{}:
			verdict.Why = checksum.Halted
		}
	}
	return verdict
}

// empty reports whether a workload has had no available replica for so long that it is down.
func (f *Facts) empty(now time.Time) bool {
	return f.Status.Available == 0 && !f.Empty.IsZero() && now.Sub(f.Empty) >= unhealthyAfter
}

// beforeTurn is how far a workload is that waits for its turn, and when to look again,
// zero: when something happens. One that lacks nothing, but on nodes that are not
// ready, is rolled out.
func (p *Plan) beforeTurn(ref workload.Ref, f *Facts, now time.Time) (phase workload.Phase, again time.Duration, need Verdict) {
	phase = f.Status.Phase
	if phase != workload.Rolling {
		return phase, 0, Verdict{}
	}
	stands := now.Sub(f.Since)
	again = max(0, unhealthyAfter-stands)
	if !f.Status.PerNode || f.Status.Missing == 0 {
		return phase, again, Verdict{}
	}
	if soak := min(p.limits.soak(f), unhealthyAfter); stands < soak {
		return phase, soak - stands, Verdict{}
	}
	r := p.of(ref)
	if known := r.finding; known == nil || now.Sub(known.when) >= findingFor || known.status != f.Status || !known.since.Equal(f.Since) {
		if f.Pods == nil {
			return phase, 0, Verdict{Do: ReadPods}
		}
		if f.Pods.Access == Unread {
			return phase, 0, Verdict{Retry: true}
		}
		_, alone, ask := f.nodesOf()
		if len(ask) > 0 {
			return phase, 0, Verdict{Do: ReadNodes, Nodes: ask}
		}
		p.update(r, now, func() { r.finding = &finding{f.Status, f.Since, now, alone} })
	}
	if r.finding.alone {
		return workload.RolledOut, 0, Verdict{}
	}
	return phase, again, Verdict{}
}
