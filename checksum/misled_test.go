package checksum_test

import (
	"maps"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// snapshotsOf are the snapshots of messages in some worlds.
func snapshotsOf(worlds ...world) func(checksum.Source, string) *checksum.Content {
	return func(of checksum.Source, name string) *checksum.Content {
		for _, w := range worlds {
			if ring.NamesSnapshot(namespace, of, w[of], name) {
				return w[of]
			}
		}
		return nil
	}
}

// with is records with the pins of another world.
func with(records checksum.Records, other world) checksum.Records {
	records.Pins = other.pinned().Pins
	return records
}

// A pin is compared with what is on record: one that has pods start with something else is
// untrue. Pins come, go and change together with a stamp, and never alone.
func TestPinsAreComparedWithStamps(t *testing.T) {
	var (
		builds   = world{message: text("a", "1", "build", "1"), password: text("password", "p")}.ignoring("build")
		rebuilt  = world{message: text("a", "1", "build", "2"), password: text("password", "p")}.ignoring("build")
		healed   = checksum.Records{Stamps: edited.stamps(key(2), password, extra), Baseline: edited.values(key(2), message)}
		misled   = checksum.Finding{Reason: reason.NotPinned, Source: message, Text: "its pin named other content than its stamp; its next rollout pins it again"}
		noStamp  = checksum.Records{Stamps: edited.stamps(key(2), password, extra), Baseline: edited.values(key(2), message), Pins: present.pinned().Pins}
		released = checksum.Records{Stamps: present.all().Stamps, Baseline: edited.values(key(2), message)}
	)
	another := with(edited.all(), present)
	another.Stamps = maps.Clone(another.Stamps)
	another.Stamps[checksum.StampKey(password)] = newPass.stamps(key(2), password)[checksum.StampKey(password)]
	for about, c := range map[string]pinCase{
		"a pin of other content than the stamp says goes, and its stamp with it": {
			admission: held(rolling, with(edited.all(), present)), now: edited, want: reason.Stamped, records: healed, findings: []checksum.Finding{misled},
		},
		"that is true then": {admission: held(rolling, healed), now: edited, want: reason.Kept, records: healed},
		"and pinned by the next change": {
			admission: held(rolling, healed), now: present, want: reason.Stamped, records: present.pinned(), makes: []checksum.Source{message},
		},
		"a stamp that is untrue as well takes the stamp of the other with it": {
			admission: held(rolling, another), now: edited, want: reason.Stamped, records: healed, findings: []checksum.Finding{misled},
		},
		"where there is no stamp it is stamped and pinned": {
			admission: held(rolling, noStamp), now: edited, want: reason.Stamped, records: edited.pinned(), makes: []checksum.Source{message},
		},
		"a changed template is stamped and pinned as ever": {
			admission: held(changedTemplate, with(edited.all(), present)), now: edited, want: reason.Stamped, records: edited.pinned(), makes: []checksum.Source{message},
		},
		"a process that does not pin compares nothing": {
			admission: held(rolling, with(edited.all(), present)), now: edited, off: true, want: reason.Kept, records: with(edited.all(), present),
		},
		"a snapshot that is not there misleads nobody": {
			admission: held(rolling, with(edited.all(), thirdly)), now: edited, want: reason.Kept, records: with(edited.all(), thirdly),
		},
		"a recording leaves it": {
			admission: held(recording, with(edited.all(), present)), now: edited, want: reason.Kept, records: with(edited.all(), present),
		},
		"what is held stays": {
			admission: held(rolling, with(edited.all(), present)), now: edited, want: reason.Observed, records: with(edited.all(), present),
			policy: func(p *checksum.Policy) { p.Observe = true }, findings: []checksum.Finding{{Reason: reason.ObserveMode}},
		},
		"an older snapshot that differs in ignored keys alone is true": {
			admission: held(rolling, builds.pinned()), now: rebuilt, want: reason.Kept, records: builds.pinned(),
		},
		"pins do not come because a baseline is over": {
			admission: held(rolling, released), now: present, want: reason.Stamped, records: present.all(),
		},
	} {
		t.Run(about, func(t *testing.T) {
			if !c.off {
				c.admission.SnapshotOf = snapshotsOf(present, edited, builds, rebuilt)
			}
			c.run(t)
		})
	}
}

// A source that has changed since is untrue by itself, and no pin of it is looked at.
func TestPinsOfWhatHasChangedMisleadNobody(t *testing.T) {
	policy := pinningPolicy()
	contentOf := func(s checksum.Source) *checksum.Content { return thirdly[s] }
	if misled := ring.Misled(namespace, checksum.Selections(reads, policy), with(edited.all(), present), contentOf, snapshotsOf(present)); len(misled) > 0 {
		t.Errorf("there are %v", misled)
	}
}

// Where nothing else is stamped, adopt: restart does not forget the baseline of what was misled.
func TestPinsThatMislead_AreOnRecordAfterwards(t *testing.T) {
	policy := pinningPolicy()
	policy.RestartUnstamped = true
	alone := checksum.Records{Stamps: edited.stamps(key(2), message), Pins: present.pinned().Pins}
	got := decide(ring, admissionCase{
		Namespace: namespace, Asker: checksum.Roller, Fresh: true, Pinning: true, Policy: policy, Held: alone, Sent: alone,
		References: reads[:1], Selections: checksum.Selections(reads[:1], policy),
		Content: func(s checksum.Source) *checksum.Content { return edited[s] }, SnapshotOf: snapshotsOf(present),
	})
	if want := edited.values(key(2), message); !maps.Equal(got.Records.Baseline, want) || len(got.Records.Stamps) > 0 {
		t.Errorf("on record is %+v, want the baseline %v", got.Records, want)
	}
}

// Kinds whose pods are not pinned keep no pins either where one misleads.
func TestPinsThatMislead_OnOtherKinds(t *testing.T) {
	c := pinCase{admission: held(rolling, with(edited.all(), present)), off: true, now: edited, want: reason.Stamped}
	c.admission.SnapshotOf = snapshotsOf(present)
	c.records = checksum.Records{Stamps: edited.stamps(key(2), password, extra), Baseline: edited.values(key(2), message)}
	c.findings = []checksum.Finding{{Reason: reason.NotPinned, Source: message, Text: "its pin named other content than its stamp; its next rollout pins it again"}}
	c.run(t)
}
