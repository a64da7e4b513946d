package rollout

import (
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// An undo of a workload sends content back: its rolls do not take that again. It is the
// strongest verdict on a change that there is, so it halts the change in its namespace, as a
// failure does. The workload itself waits for nothing. Such a halt ends when the source
// changes, when somebody resumes, when somebody accepts the content for the workload, and when
// that is deleted and not made again within the settling. It stands on the workload, so a new
// leader finds it.

// decline is content of a source that an undo has sent back.
type decline struct {
	content *checksum.Content
	// seen is when that came to be known; of what a new leader finds, when the content was
	// written: somebody who has resumed since may have done so before the undo, or after it.
	seen time.Time
}

// declares notes what an undo of a workload has sent back, and what is accepted since.
func (p *Plan) declares(ref workload.Ref, f *Facts, now time.Time) {
	r := p.records[ref]
	if len(f.Declined) == 0 && (r == nil || len(r.declined) == 0) {
		return
	}
	if r == nil {
		r = p.of(ref)
	}
	is, news := make(map[SourceRef]decline, len(f.Declined)), len(f.Declined) != len(r.declined)
	for source, content := range f.Declined {
		at := SourceRef{ref.Namespace, source}
		known, was := r.declined[at]
		if !was || !known.content.SameEntries(content) {
			if known, news = (decline{content, now}), true; r.unexamined {
				known.seen = p.cluster.Written(at)
			}
		}
		is[at] = known
	}
	if !news {
		return
	}
	var accepted []SourceRef
	for at, was := range r.declined {
		if c := p.changes[at]; c != nil && c.root().brings(at, was.content) && f.carries(at.Source, was.content) {
			accepted = append(accepted, at)
		}
	}
	p.update(r, now, func() { p.declare(r, is) })
	if len(accepted) > 0 { // it shows how it does with that, as if its turn had come
		slices.SortFunc(accepted, SourceRef.Compare)
		p.adopt(r, f, now, accepted, true, now)
		r.attempt.health = health{selector: r.attempt.health.selector, progressed: now, best: NoExtent()} // that was of another template
	}
}

// declare changes what a workload has declined, in an update of its record.
func (p *Plan) declare(r *record, is map[SourceRef]decline) {
	for at := range r.declined {
		if delete(p.decliners[at], r); len(p.decliners[at]) == 0 {
			delete(p.decliners, at)
		}
	}
	for at := range is {
		if p.decliners[at] == nil {
			p.decliners[at] = map[*record]struct{}{}
		}
		p.decliners[at][r] = struct{}{}
	}
	r.declined = is
}

// countDeclined counts what a workload has declined as failures.
func (p *Plan) countDeclined(r *record, of func(*change) *count) {
	for at, d := range r.declined {
		if c := p.changes[at]; c != nil && c.root().brings(at, d.content) {
			of(c).fails(d.seen)
		}
	}
}

// whyStops is why a workload that halts a change has failed with it, "" when it has not:
// then an undo of it has declined the content.
func (r *record) whyStops(c *change) string {
	a := r.attempt
	if a == nil || !a.failed() {
		return ""
	}
	for was := range a.holds {
		if was.root() == c {
			return a.why
		}
	}
	for was, proves := range a.counts {
		if proves && was.root() == c {
			return a.why
		}
	}
	return ""
}

// declinedBy reports whether a change is halted by nothing but undos, one of them of this
// workload. What it waits for all the same is another source of the change, and it may take
// that: those that it holds up cannot go first.
func (c *change) declinedBy(r *record) bool {
	if _, its := c.failures[r]; !its {
		return false
	}
	for other := range c.failures {
		if other.whyStops(c) != "" {
			return false
		}
	}
	return true
}

// declinesStill reports whether a workload has declined a source of a change of which nobody
// has said since that it is to go on.
func (p *Plan) declinesStill(r *record, c *change) bool {
	for at, d := range r.declined {
		if c.brings(at, d.content) && !p.resumed(at, d.seen) {
			return true
		}
	}
	return false
}

// declinedForOthers reports whether somebody has declined a change for whose copies in other
// namespaces workloads wait.
func (c *change) declinedForOthers() bool {
	for _, g := range c.groups {
		if len(c.failures) > 0 && g.waiting+g.under > 0 {
			return true
		}
	}
	return false
}
