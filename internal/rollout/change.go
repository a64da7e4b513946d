package rollout

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// SourceRef is a source in its namespace.
type SourceRef struct {
	Namespace string
	Source    checksum.Source
}

// Compare orders sources: by namespace, kind and name.
func (s SourceRef) Compare(other SourceRef) int {
	return cmp.Or(cmp.Compare(s.Namespace, other.Namespace), s.Source.Compare(other.Source))
}

// change is one source going from one content to another in one namespace, or several
// that settled together and concern common workloads. The copies of a replicated
// ConfigMap are changes of one group.
type change struct {
	number    uint64 // of all that have begun
	namespace string
	born      time.Time
	written   time.Time                       // when its source was last written, of those that were found
	contents  map[SourceRef]*checksum.Content // of its sources; none: they have changed again
	into      *change                         // which has taken it in, nil: none
	groups    map[SourceRef]*group            // of its sources, of those that have one
	// found tells that it began before we looked, so that workloads may have rolled
	// for it already.
	found bool
	// unseen is how many workloads have to be looked at before it begins, so that
	// the first is the right one; left are those of them that it brought itself, and
	// group the one that waits for those as well.
	unseen, left int
	group        *group
	// proven is how many became healthy with each source, settled how many rolled.
	// lacked is how many became healthy that lacked replicas when their turn came, and broken
	// how many of settled were down then, and have failed.
	proven                  map[SourceRef]int
	settled, lacked, broken int

	tally
	members      map[*record]struct{}  // those that the tally counts
	failures     map[*record]time.Time // those that halt it, with when their rollout began
	stop         *record               // the workload that halts it, as it has failed or declined it, nil: none
	halted       workload.Ref          // the workload that halts it, as people were told; the zero Ref: none
	foreign      bool                  // people know that it is halted by failures in other namespaces
	toRecheck    bool                  // to be judged
	over         bool                  // nothing is left to do
	failed       bool                  // somebody has failed with it, and was not waited for
	waitingSince time.Time             // since when somebody could roll, were it its turn
	queues
}

// tally counts the workloads of a change, or of a group.
type tally struct {
	waiting  int // for their turn
	healthy  int // of them, those that were healthy before, and wait for others alone
	attempts int // that count for it
	under    int // of them, those under way or not judged yet, and those that are about to be
	lacking  int // of these, those that lacked replicas when their turn came
}

func (t *tally) add(other tally, sign int) {
	t.waiting += sign * other.waiting
	t.healthy += sign * other.healthy
	t.attempts += sign * other.attempts
	t.under += sign * other.under
	t.lacking += sign * other.lacking
}

func (c *change) root() *change {
	for c.into != nil {
		c = c.into
	}
	return c
}

// begun reports whether anything has rolled for it, or somebody has declined it.
func (c *change) begun() bool { return c.settled > 0 || c.attempts > 0 || len(c.failures) > 0 }

// brings reports whether a source goes to a content by a change.
func (c *change) brings(at SourceRef, content *checksum.Content) bool {
	its, known := c.contents[at]
	return known && its.SameEntries(content)
}

func (c *change) sources() []SourceRef {
	return slices.SortedFunc(maps.Keys(c.contents), SourceRef.Compare)
}

// ChangeOf is a number that sources have in common whose workloads roll in common steps:
// those of one change, and of the copies of a replicated ConfigMap. 0: no change of the
// source is open.
func (p *Plan) ChangeOf(at SourceRef) uint64 {
	known := p.changes[at]
	if known == nil {
		return 0
	}
	c := known.root()
	least := c.number
	for _, g := range c.groups {
		for other := range g.changes {
			least = min(least, other.number)
		}
	}
	return least
}

// settledWith reports whether two changes settled together. Of those that were there
// before us, only when they were written is known.
func (c *change) settledWith(other *change, settle time.Duration) bool {
	return !c.found || c.written.Sub(other.written).Abs() <= longestSettle*settle
}

// halts reports whether a change rolls no workload, because one has failed.
func (c *change) halts() bool { return c.stop != nil || c.foreign }

// carriedBy reports whether a workload that carries the present content of some
// sources carries what a change brought, as far as it is among some sources.
func (c *change) carriedBy(f *Facts, sources []SourceRef) bool {
	for _, at := range sources {
		if content, its := c.contents[at]; its && !f.carries(at.Source, content) {
			return false
		}
	}
	return true
}

// released reports whether a failure that began at some moment holds a change no
// more, because somebody said so on one of its sources.
func (p *Plan) released(c *change, began time.Time) bool {
	for at := range c.contents {
		if p.resumed(at, began) {
			return true
		}
	}
	return false
}

// resumed reports whether somebody said on a source that a failure that began at some
// moment holds it no more.
func (p *Plan) resumed(at SourceRef, began time.Time) bool {
	content := p.cluster.Content(at)
	return content != nil && content.Policy.Resumes().After(began)
}

// ended is a change that has ended well.
type ended struct {
	content *checksum.Content
	proven  int
}

// room reports whether a step of the group has room for one more, beside some that are
// under way; ended are those that the steps count.
func (l *Limits) room(under, ended int) bool { return under < l.allowed(ended)-ended }

// allowed is how many workloads may have begun when some are proven: the first
// step, and twice as many more with each step that is complete.
func (l *Limits) allowed(proven int) int {
	complete := bits.Len(uint(proven/l.Step+1)) - 1 // #nosec G115 -- neither is negative
	return l.Step * (1<<(complete+1) - 1)
}
