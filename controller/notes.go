package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/workload"
)

// notes remember what people were told about a workload, so that they are told
// once, and which sources it was seen to miss. Losing them (a restart) costs an
// event that is repeated, missing or too careful, and never a roll.
type notes struct {
	mu   sync.Mutex
	made map[workload.Ref]*note
	told map[rollout.SourceRef]string // what people were told on sources that cannot be read
}

type note struct {
	warned map[string]string
	// missing are the sources that the workload was seen to lack, with the
	// first content that came, nil until then.
	missing map[checksum.Source]*checksum.Content
	// observed is what the workload would have rolled for, when people were told.
	observed map[checksum.Source]*checksum.Content
	// changed are the sources for which a roll was asked for, and asked is what
	// was on record then; none when no roll is to be told of.
	changed []checksum.Source
	asked   checksum.Records
	// record is a recording that was asked for, nil when none is to be told of.
	record *toRecord
	held   *held
}

// toRecord is a recording that was asked for.
type toRecord struct {
	of      *subject
	review  review
	written time.Time // when the template was
}

// has reports whether a source is recorded by now.
func (r *toRecord) has(source checksum.Source, now checksum.Records) bool {
	is := now.Baseline[source]
	return is != "" && is != r.of.records.Baseline[source]
}

// held is what a workload waits to roll for.
type held struct {
	since   time.Time
	sources []checksum.Source
	records checksum.Records
}

func newNotes() *notes {
	return &notes{made: map[workload.Ref]*note{}, told: map[rollout.SourceRef]string{}}
}

func (n *notes) of(user workload.Ref) *note {
	found := n.made[user]
	if found == nil {
		found = &note{warned: map[string]string{}, missing: map[checksum.Source]*checksum.Content{}}
		n.made[user] = found
	}
	return found
}

// first reports whether a warning is news.
func (n *notes) first(user workload.Ref, why checksum.Reason, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.of(user)
	if note.warned[why.Event()] == text {
		return false
	}
	note.warned[why.Event()] = text
	return true
}

// firstOn reports whether what is to be told on a source is news; "" is nothing.
func (n *notes) firstOn(at rollout.SourceRef, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told[at] == text {
		return false
	}
	if text == "" {
		delete(n.told, at)
		return false
	}
	n.told[at] = text
	return true
}

// over forgets a warning of what has ended, unless it says but.
func (n *notes) over(user workload.Ref, why checksum.Reason, but string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if note := n.made[user]; note != nil && note.warned[why.Event()] != but {
		delete(note.warned, why.Event())
	}
}

// observes reports whether it is news what a workload would roll for.
func (n *notes) observes(user workload.Ref, contents map[checksum.Source]*checksum.Content) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.of(user)
	if maps.EqualFunc(note.observed, contents, (*checksum.Content).SameEntries) {
		return false
	}
	note.observed = contents
	return true
}

// settle forgets what a workload was warned of: it is well again. That its pods cannot
// be looked at is no matter of its own, and is not said again.
func (n *notes) settle(user workload.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if note := n.made[user]; note != nil {
		maps.DeleteFunc(note.warned, func(event, _ string) bool { return event != checksum.PodsUnseen.Event() })
		// A roll that was asked for and did not come is not needed any more.
		note.changed, note.asked, note.record, note.observed = nil, checksum.Records{}, nil, nil
		if len(note.missing) == 0 && len(note.warned) == 0 {
			delete(n.made, user)
		}
	}
}

// leave drops what was noted of a workload that is not served any more, but for what
// it was warned of while its rollout is followed.
func (n *notes) leave(user workload.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.made[user]
	if note == nil {
		return
	}
	maps.DeleteFunc(note.warned, func(event, _ string) bool {
		return event != checksum.PodsUnseen.Event() && event != checksum.Retry.Event()
	})
	if delete(n.made, user); len(note.warned) > 0 {
		n.of(user).warned = note.warned
	}
}

// forget drops all notes of a workload.
func (n *notes) forget(user workload.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.made, user)
}

// hold notes that a workload does not roll yet, since when it is first said.
func (n *notes) hold(user workload.Ref, since time.Time, sources []checksum.Source, records checksum.Records) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.of(user)
	if note.held == nil {
		note.held = &held{since: since}
	}
	note.held.sources, note.held.records = sources, records
}

// waits is what a workload waits for, nil when nothing.
func (n *notes) waits(user workload.Ref) *held {
	n.mu.Lock()
	defer n.mu.Unlock()
	if note := n.made[user]; note != nil {
		return note.held
	}
	return nil
}

// waited notes that a workload waits no more.
func (n *notes) waited(user workload.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if note := n.made[user]; note != nil {
		note.held = nil
	}
}

// missed notes the sources that a workload cannot start without and lacks.
func (n *notes) missed(user workload.Ref, missing []checksum.Finding) {
	if len(missing) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, finding := range missing {
		n.of(user).missing[finding.Source] = nil
	}
}

// came notes the content of a source that is there; the first that came after
// it was missed counts.
func (n *notes) came(user workload.Ref, source checksum.Source, content *checksum.Content) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.made[user]
	if note == nil {
		return
	}
	if first, missed := note.missing[source]; missed && first == nil {
		note.missing[source] = content
	}
}

// firstContent is what a source that was missed came with.
func (n *notes) firstContent(user workload.Ref, source checksum.Source) (first *checksum.Content, wasMissing bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if note := n.made[user]; note != nil {
		first, wasMissing = note.missing[source]
	}
	return first, wasMissing
}

// found notes that sources are there now and on record.
func (n *notes) found(user workload.Ref, sources []checksum.Source) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if note := n.made[user]; note != nil {
		for _, source := range sources {
			delete(note.missing, source)
		}
	}
}

// rolling notes that a roll is asked for.
func (n *notes) rolling(user workload.Ref, changed []checksum.Source, asked checksum.Records) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.of(user)
	note.changed, note.asked = changed, asked
}

// rolled returns for which sources a roll was asked for that has come by now,
// once, and whether nothing was on record before.
func (n *notes) rolled(user workload.Ref, now checksum.Records) (changed []checksum.Source, adopted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.made[user]
	if note == nil || len(note.changed) == 0 || !rollout.RolledBetween(note.asked, now) {
		return nil, false
	}
	changed, adopted = note.changed, note.asked.Equal(checksum.Records{})
	note.changed, note.asked = nil, checksum.Records{}
	return changed, adopted
}

// recording notes that a recording is asked for.
func (n *notes) recording(user workload.Ref, asked *toRecord) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of(user).record = asked
}

// recorded returns the recording that was asked for and has come by now, once; nil when
// there is none.
func (n *notes) recorded(user workload.Ref, now checksum.Records) *toRecord {
	n.mu.Lock()
	defer n.mu.Unlock()
	note := n.made[user]
	if note == nil || note.record == nil ||
		!slices.ContainsFunc(note.record.review.ToRecord, func(s checksum.Selection) bool { return note.record.has(s.Source, now) }) {
		return nil
	}
	asked := note.record
	note.record = nil
	return asked
}
