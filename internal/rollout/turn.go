package rollout

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// wait has a workload wait for its turn. If it waited before, that wait goes on.
func (p *Plan) wait(r *record, next waiter, now time.Time) *waiter {
	known, w := r.waits, &next
	w.since = now
	if known != nil {
		w.since, w.tries, w.retry, w.home = known.since, known.tries, known.retry, known.home
		w.busyFrom, w.busyFor = known.busyFrom, known.busyFor
		if !w.due.After(now) && slices.Equal(known.sources, w.sources) { // else it was for something else
			w.granted = known.granted
		}
	}
	if missed := r.missed; missed != nil { // it did not come
		w.tries, w.retry = missed.tries+1, missed.retry
	}
	if w.retry.After(w.due) {
		w.due = w.retry
	}
	if r.attempt != nil && r.attempt != r.missed && w.busy {
		w.busy, w.last = false, true // its own rollout under way is for older content
	}
	w.idle(now)
	for _, source := range w.sources {
		switch at := (SourceRef{r.ref.Namespace, source}); {
		case p.changes[at] == nil:
			p.find(at, now)
		case len(p.fell[at]) > 0:
			p.rise(at, now)
		}
		if p.changes[SourceRef{r.ref.Namespace, source}].root().declinedBy(r) {
			w.busy, w.last = false, true // all others that wait for that are held by it
		}
	}
	p.update(r, now, func() {
		if r.missed != nil {
			r.undo()
			r.missed = nil
		}
		if p.merge(r, w, now); known == nil {
			p.waiting++
		}
		r.waits = w
	})
	return w
}

// idle counts for how long a waiter was busy.
func (w *waiter) idle(now time.Time) {
	switch {
	case w.busy && w.busyFrom.IsZero():
		w.busyFrom = now
	case !w.busy && !w.busyFrom.IsZero():
		w.busyFor += now.Sub(w.busyFrom)
		w.busyFrom = time.Time{}
	}
}

// undo puts back what was known before a rollout that did not come.
func (r *record) undo() {
	if r.missed == r.attempt {
		r.attempt = r.missed.before
	}
}

// merge makes one change of what concerns a waiter and has settled together.
func (p *Plan) merge(r *record, w *waiter, now time.Time) {
	var first *change
	for _, source := range w.sources {
		other := p.changes[SourceRef{r.ref.Namespace, source}].root()
		switch {
		case first == nil:
			first = other
		case first != other && !first.begun() && !other.begun() && first.found == other.found && first.settledWith(other, p.limits.Settle):
			p.take(first, other, now)
		}
	}
}

// take makes one change part of another.
func (p *Plan) take(first, other *change, now time.Time) {
	members := sortedRecords(maps.Keys(other.members))
	for _, r := range members {
		p.retract(r)
	}
	for _, r := range sortedRecords(maps.Keys(first.members)) {
		p.retract(r)
		members = append(members, r)
	}
	first.unseen += other.unseen
	maps.Copy(first.contents, other.contents)
	maps.Copy(first.proven, other.proven)
	for at, g := range other.groups {
		first.groups[at] = g
		delete(g.changes, other)
		g.changes[first] = struct{}{}
	}
	other.into = first
	for _, r := range members {
		p.contribute(r, now)
	}
}

// Withdraw notes that a workload does not wait any more, nor for a retry. An uncertain
// patch has been resolved by then.
func (p *Plan) Withdraw(ref workload.Ref, now time.Time) {
	if r := p.records[ref]; r != nil && (r.waits != nil || r.missed != nil) {
		p.update(r, now, func() { p.stopWaiting(r) })
	}
}

func (p *Plan) stopWaiting(r *record) {
	if r.missed = nil; r.waits != nil {
		r.waits = nil
		p.waiting--
	}
}

// RolledByOthers notes that a workload that waits, for its turn or a retry, carries
// what is true: as it was put back, or because somebody has rolled it. Then its rollout
// counts as if it had been granted.
func (p *Plan) RolledByOthers(ref workload.Ref, f *Facts, now time.Time) {
	r := p.records[ref]
	if r == nil || r.waits == nil && r.missed == nil {
		return
	}
	rolled, sources := r.waits != nil && RolledBetween(r.waits.records, f.Records), []checksum.Source(nil)
	if rolled {
		declined := func(source checksum.Source) bool { _, is := f.Declined[source]; return is }
		sources = slices.DeleteFunc(slices.Clone(r.waits.sources), declined)
		rolled = len(sources) > 0
	}
	p.update(r, now, func() {
		if r.missed = nil; rolled {
			r.waits.sources = sources
			p.begins(r, now)
		}
		p.stopWaiting(r)
	})
	if rolled {
		p.Confirmed(ref, f.Records, f.Sources, now)
	}
}

// Stands notes that a workload whose turn has come stands in line for a permit: it does
// not lose its turn by that.
func (p *Plan) Stands(ref workload.Ref, now time.Time) {
	if r := p.records[ref]; r != nil && r.waits != nil && !r.waits.granted.IsZero() {
		p.update(r, now, func() { r.waits.granted = now })
	}
}

// Sent begins the rollout of a workload whose turn has come.
func (p *Plan) Sent(ref workload.Ref, now time.Time) {
	if r := p.records[ref]; r != nil && r.waits != nil {
		p.update(r, now, func() { p.begins(r, now); p.stopWaiting(r) })
	}
}

func (p *Plan) begins(r *record, now time.Time) {
	w, was := r.waits, r.attempt
	a := &attempt{trial: trial{began: now, level: w.level}, counts: map[*change]bool{}, holds: map[*change]hold{}, records: w.records, lacked: w.last, down: w.down || w.mute || w.silent, before: was, tries: w.tries}
	if was != nil {
		was.before, a.level = nil, max(a.level, was.level)
		if !was.failed() {
			a.lacked = was.lacked // what it lacks now may be by its own rollout
		}
		maps.Copy(a.holds, was.holds)
		a.why = was.why
		for c, proves := range was.counts {
			switch {
			case !was.failed():
				a.counts[c] = proves
			case proves:
				a.holds[c] = hold{was.began, append(slices.Clone(was.sources), a.holds[c].sources...)}
			}
		}
	}
	for _, source := range w.sources {
		at := SourceRef{r.ref.Namespace, source}
		c := p.changes[at].root()
		a.counts[c] = !a.down || a.counts[c]
		a.sources = append(a.sources, at)
	}
	if was != nil && !was.failed() { // it is yet to show how it does with those as well
		for _, at := range was.sources {
			if !slices.Contains(a.sources, at) {
				a.sources = append(a.sources, at)
			}
		}
	}
	r.attempt = a
}

// Refused notes that what was sent did not come, or, unless that is certain, that
// it is not known whether it came. The workload has its next turn after a while, which
// grows with each try up to most.
func (p *Plan) Refused(ref workload.Ref, certain bool, most time.Duration, now time.Time) {
	r := p.records[ref]
	if r == nil || r.attempt == nil {
		return
	}
	p.update(r, now, func() {
		r.missed = r.attempt
		r.missed.retry = now.Add(min(retryAfter(r.missed.tries), most))
		if certain {
			r.undo()
		}
	})
}

// Uncertain reports whether it is not known if what was sent has come.
func (p *Plan) Uncertain(ref workload.Ref) bool {
	r := p.records[ref]
	return r != nil && r.missed != nil && r.attempt == r.missed
}

// Again reports whether a workload is to be tried again.
func (p *Plan) Again(ref workload.Ref) bool {
	r := p.records[ref]
	return r != nil && (r.missed != nil || r.waits != nil && r.waits.tries > 0)
}

// Confirmed notes what is on record of a workload after a patch was sent, whose answer
// may have been lost.
func (p *Plan) Confirmed(ref workload.Ref, records checksum.Records, sources []checksum.Source, now time.Time) {
	r := p.records[ref]
	if r == nil || r.attempt == nil || r.attempt.found {
		return
	}
	a := r.attempt
	if !RolledBetween(a.records, records) {
		if r.missed == a {
			p.update(r, now, r.undo)
		}
		return
	}
	p.update(r, now, func() {
		r.missed, a.rolled = nil, nil
		for _, source := range sources {
			was, _ := a.records.Of(source)
			if is, _ := records.Of(source); is != was {
				a.rolled = append(a.rolled, source)
			}
		}
	})
}

// Answered is Confirmed of a patch whose answer shows the workload as it is now.
func (p *Plan) Answered(ref workload.Ref, f *Facts, now time.Time) {
	p.Confirmed(ref, f.Records, f.Sources, now)
	if r := p.records[ref]; r != nil && r.attempt != nil {
		r.attempt.health.status = f.Status.StatusHash
	}
}

// Panicked is about a workload at which a look panicked. If its turn had come, it gives
// that back. After RolloutDeadline without progress its rollout has failed, as nobody
// can know whether it is healthy.
func (p *Plan) Panicked(ref workload.Ref, records checksum.Records, now time.Time) {
	r := p.records[ref]
	if r == nil {
		return
	}
	if w := r.waits; w != nil {
		p.update(r, now, func() { w.giveBack(now) })
	}
	if a := r.attempt; a != nil && !a.failed() && now.Sub(a.progressed()) >= p.limits.RolloutDeadline {
		p.fail(r, "configstamp fails to look at it (a panic), so whether it is healthy is not known", records, now)
	}
}

// sortedRecords are some records in the order of their workloads.
func sortedRecords(records iter.Seq[*record]) []*record {
	return slices.SortedFunc(records, func(a, b *record) int { return a.ref.Compare(b.ref) })
}
