package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/rollout"
	"github.com/configstamp/configstamp/internal/waiting"
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
	// holds is what the present look has found to hold the workload.
	holds waiting.Found
	// told is what people were told of what held it at the last look, nil for nothing.
	told *heldBy
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
	// held is what the workload waits to roll for, nil when it does not.
	held *held
}

// heldBy is what held a workload when it had some records, in the words that people know.
type heldBy struct {
	text    string
	at      time.Time
	sources []checksum.Source // for which it waited to roll
	records checksum.Records
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
func (n *notes) of(user workload.Ref) *note {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.made[user] == nil {
		n.made[user] = &note{}
	}
	return n.made[user]
}

// forget drops the note about a workload.
func (n *notes) forget(user workload.Ref) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.made, user)
}

// end ends a look at a workload, and returns what it has found to hold it. A note that
// says nothing is dropped.
func (n *notes) end(user workload.Ref) (holds waiting.Found) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := n.made[user]
	if m == nil {
		return holds
	}
	holds, m.holds = m.holds, waiting.Found{}
	if len(m.missing) == 0 && m.observed == nil && m.changed == nil && m.record == nil && m.held == nil && m.told == nil {
		delete(n.made, user)
	}
	return holds
}

// settle keeps what is still true of a workload for which nothing is due: a roll that
// was asked for and did not come is not needed any more.
func (n *note) settle() {
	if *n = (note{holds: n.holds, missing: n.missing, held: n.held}); len(n.missing) == 0 {
		n.held = nil
	}
}

// observes reports whether it is news what a workload would roll for.
func (n *note) observes(contents map[checksum.Source]*checksum.Content) bool {
	if maps.EqualFunc(n.observed, contents, (*checksum.Content).SameEntries) {
		return false
	}
	n.observed = contents
	return true
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
			n.missing = map[checksum.Source]*checksum.Content{}
		}
		n.missing[finding.Source] = nil
	}
}

// came notes the content of a source that is there; the first that came after
// it was missed counts.
func (n *note) came(source checksum.Source, content *checksum.Content) {
	if first, missed := n.missing[source]; missed && first == nil {
		n.missing[source] = content
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

const (
	// believed is how long a claim of another installation counts without asking its
	// webhook again, and believedWhereNamed where the Namespace names us: the other one is
	// about to hear of that.
	believed, believedWhereNamed = noHurry, 30 * time.Second
	// renewedFor is how long a workload is not recorded again over the same key. A lost key
	// cannot come back: one that does belongs to another installation, even if its webhook
	// is silent.
	renewedFor = 24 * time.Hour
)

// others remembers what other installations of configstamp keep in the namespaces
// that we serve too, so that we neither write over it nor ask about it each time we
// look. Losing it (a new leader) costs one dry run for each namespace.
type others struct {
	mu      sync.Mutex
	claimed map[claimedKey]time.Time              // until when we believe it
	renewed map[workload.Ref]map[string]time.Time // when it was recorded again, by key
}

type claimedKey struct{ namespace, id string }

// keep tells how long to leave a workload alone that has values under other keys; zero: ask
// about them now. back tells that a value was recorded again, and its key has come back.
func (o *others) keep(user workload.Ref, ids []string, now time.Time) (wait time.Duration, back bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		wait = max(wait, o.claimed[claimedKey{user.Namespace, id}].Sub(now))
		if when, ok := o.renewed[user][id]; ok && now.Sub(when) < renewedFor {
			wait, back = max(wait, when.Add(renewedFor).Sub(now)), true
		}
	}
	return wait, back
}

// claim notes which of some keys are claimed in a namespace, by which installation. by is
// one of those; lapsed tells that a key was claimed and is not any more.
func (o *others) claim(namespace string, ids []string, claims map[string]string, now, until time.Time) (by string, claimed, lapsed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.claimed, func(_ claimedKey, until time.Time) bool { return now.Sub(until) > believed })
	for _, id := range ids {
		key := claimedKey{namespace, id}
		_, was := o.claimed[key]
		if installation, is := claims[id]; is {
			o.claimed[key], by, claimed = until, installation, true
		} else {
			delete(o.claimed, key)
			lapsed = lapsed || was
		}
	}
	return by, claimed, lapsed
}

// renew notes that values under some keys were recorded again, under ours.
func (o *others) renew(user workload.Ref, ids []string, now time.Time) {
	if len(ids) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.renewed[user] == nil {
		o.renewed[user] = map[string]time.Time{}
	}
	maps.DeleteFunc(o.renewed[user], func(_ string, when time.Time) bool { return now.Sub(when) >= renewedFor })
	for _, id := range ids {
		o.renewed[user][id] = now
	}
}

// forget drops what is remembered of a workload.
func (o *others) forget(user workload.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.renewed, user)
}

// ask has us ask again about everything in a namespace.
func (o *others) ask(namespace string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.claimed {
		if key.namespace == namespace {
			o.claimed[key] = now
		}
	}
	maps.DeleteFunc(o.renewed, func(user workload.Ref, _ map[string]time.Time) bool { return user.Namespace == namespace })
}

// claimed reports whether another installation claims some keys that are on record,
// by the answer to a dry run, and for how long that counts.
func (c *Controller) claimed(user workload.Ref, ids []string, try answer) (wait time.Duration, claimed bool) {
	wait = believed
	if checksum.Names(c.namespaces.Get(user.Namespace).Settings, c.options.Installation) {
		wait = believedWhereNamed
	}
	claims := map[string]string{}
	for _, warning := range try.warnings {
		if claim, ok := checksum.ParseClaim(warning); ok {
			for _, id := range claim.KeyIDs {
				claims[id] = claim.Installation
			}
		}
	}
	now := c.options.Clock.Now()
	by, claimed, lapsed := c.others.claim(user.Namespace, ids, claims, now, now.Add(wait))
	if lapsed {
		c.told.over(user.Namespace, checksum.OtherInstallation, "")
	}
	if claimed {
		c.tellOther(user, by)
	}
	return wait, claimed
}

// tellOther says, once for a Namespace, that another installation serves it too; by
// is its namespace, "" when that is not known.
func (c *Controller) tellOther(user workload.Ref, by string) {
	where := "in the namespace " + by
	if by == "" {
		where = "whose webhook does not answer us"
	}
	c.onNamespace(user.Namespace, checksum.OtherInstallation, "another installation of configstamp, "+where+", serves this Namespace too: "+
		user.People()+", and all that carries its checksums, is left to it. Have one installation serve the Namespace: annotate it with "+
		"configstamp.dev/installation, the value being the namespace of that installation, or uninstall the other")
}
