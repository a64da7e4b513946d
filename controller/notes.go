package controller

import (
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// notes are what is remembered of workloads from one look to the next, so that people
// are told the truth. Losing them (a restart) costs an event that is repeated, missing
// or too careful, and never a roll.
type notes struct {
	mu   sync.Mutex
	made map[workload.Ref]*note
}

// note is about one workload. Only the look at it reads and writes it.
type note struct {
	// missing are the sources that the workload was seen to lack, with the
	// first content that came, nil until then.
	missing map[checksum.Source]checksum.Fingerprint
	// observed is what the workload would have rolled for, when people were told.
	observed map[checksum.Source]checksum.Fingerprint
	// changed are the sources for which a roll was asked for, and asked is what
	// was on record then; none when no roll is to be told of.
	changed []checksum.Source
	asked   checksum.Records
	// record is a recording that was asked for, nil when none is to be told of.
	record *toRecord
	// renewed is when it was last recorded over a key that we do not hold, or was to be; zero: never.
	renewed time.Time
	// held is what the workload waits to roll for, nil when it does not.
	held *held
}

// toRecord is a recording that was asked for.
type toRecord struct {
	of      *Workload
	review  review
	written time.Time // when the template was
}

// has reports whether a source is recorded by now.
func (r *toRecord) has(source checksum.Source, now checksum.Records) bool {
	is := now.Baseline[source]
	return is != "" && is != r.of.Records.Baseline[source]
}

// held is what a workload waits to roll for.
type held struct {
	since   time.Time
	sources []checksum.Source
	records checksum.Records
}

// of is the note about a workload, an empty one if need be.
func (n *notes) of(ref workload.Ref) *note {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.made[ref] == nil {
		n.made[ref] = &note{}
	}
	return n.made[ref]
}

// forget drops the note about a workload.
func (n *notes) forget(ref workload.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.made, ref)
}

// end ends a look at a workload. A note that says nothing is dropped.
func (n *notes) end(ref workload.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.made[ref]; m != nil && len(m.missing) == 0 && m.observed == nil && m.changed == nil && m.record == nil && m.held == nil && m.renewed.IsZero() {
		delete(n.made, ref)
	}
}

// settle keeps what is still true of a workload for which nothing is due: a roll that
// was asked for and did not come is not needed any more.
func (n *note) settle() {
	if *n = (note{missing: n.missing, held: n.held, renewed: n.renewed}); len(n.missing) == 0 {
		n.held = nil
	}
}

// hold notes that a workload does not roll yet, since when it is first said.
func (n *note) hold(since time.Time, sources []checksum.Source, records checksum.Records) {
	if n.held != nil {
		since = n.held.since
	}
	n.held = &held{since, sources, records}
}

// missed notes the sources that a workload cannot start without and lacks.
func (n *note) missed(missing []checksum.Finding) {
	for _, finding := range missing {
		if n.missing == nil {
			n.missing = map[checksum.Source]checksum.Fingerprint{}
		}
		n.missing[finding.Source] = checksum.Fingerprint{}
	}
}

// came notes the content of a source that is there; the first that came after
// it was missed counts.
func (n *note) came(source checksum.Source, content *checksum.Content) {
	if first, missed := n.missing[source]; missed && first == (checksum.Fingerprint{}) {
		n.missing[source] = content.Fingerprint()
	}
}

// rolled returns for which sources a roll was asked for that has come by now,
// once, and whether nothing was on record before.
func (n *note) rolled(now checksum.Records) (changed []checksum.Source, adopted bool) {
	if len(n.changed) == 0 || !rollout.RolledBetween(n.asked, now) {
		return nil, false
	}
	changed, adopted = n.changed, n.asked.Equal(checksum.Records{})
	n.changed, n.asked = nil, checksum.Records{}
	return changed, adopted
}

// recorded returns the recording that was asked for and has come by now, once; nil when
// there is none.
func (n *note) recorded(now checksum.Records) *toRecord {
	asked := n.record
	if asked == nil || !slices.ContainsFunc(asked.review.ToRecord, func(s checksum.Selection) bool { return asked.has(s.Source, now) }) {
		return nil
	}
	n.record = nil
	return asked
}
