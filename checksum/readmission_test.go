package checksum_test

import (
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// The rows "recording" and "rolling" of the design's table.
func TestDecideReadmissions(t *testing.T) {
	signing, old, lost := key(2), key(1), key(3)
	roller := func(held checksum.Records) admissionCase {
		return admissionCase{Asker: checksum.Roller, Held: held, Sent: held}
	}
	recorder := func(held checksum.Records) admissionCase {
		return admissionCase{Asker: checksum.Recorder, Held: held, Sent: held}
	}
	stamped := func(values ...map[checksum.Source]string) checksum.Records {
		return checksum.Records{Stamps: stampsOf(union(values...))}
	}
	recorded := func(values ...map[checksum.Source]string) checksum.Records {
		return checksum.Records{Baseline: union(values...)}
	}
	untrueAndStale := checksum.Records{
		Stamps:   mergedStamps(present.stamps(signing, message), map[string]string{"secret.configstamp.dev/gone": "x"}),
		Baseline: union(present.values(signing, password), present.values(old, extra), map[checksum.Source]string{{Kind: checksum.Secret, Name: "gone"}: "x"}),
	}
	partly := stamped(present.values(signing, message))

	for about, c := range map[string]decideCase{
		"recording gives a baseline to what has no record": {
			admission: recorder(checksum.Records{}), now: present,
			want: reason.Recorded, records: recorded(present.values(signing, message, password, extra)),
		},
		"recording leaves stamps and gives the rest a baseline": {
			admission: recorder(partly), now: edited,
			want: reason.Recorded, records: checksum.Records{Stamps: partly.Stamps, Baseline: edited.values(signing, password, extra)},
		},
		"recording leaves an untrue record for the roll": {
			admission: recorder(present.all()), now: edited,
			want: reason.Kept, records: present.all(),
		},
		"recording leaves what is true": {
			admission: recorder(recorded(present.values(old, message, password, extra))), now: present,
			want: reason.Kept, records: recorded(present.values(old, message, password, extra)),
		},
		"recording waits for a missing source and says so": {
			admission: recorder(checksum.Records{}), now: noMessage,
			want: reason.Recorded, records: recorded(noMessage.values(signing, password, extra)), findings: []checksum.Finding{messageMissing},
		},
		"recording waits for a missing key and says so": {
			admission: recorder(checksum.Records{}), now: noKey,
			want: reason.Recorded, records: recorded(noKey.values(signing, message, extra)), findings: []checksum.Finding{passwordMissing},
		},
		"recording replaces a record whose key is lost, with a warning": {
			admission: recorder(stamped(present.values(lost, message), present.values(signing, password, extra))), now: edited,
			want:     reason.Recorded,
			records:  checksum.Records{Stamps: stampsOf(union(present.values(lost, message), present.values(signing, password, extra))), Baseline: edited.values(signing, message)},
			findings: []checksum.Finding{messageLost},
		},
		"recording without proof changes nothing": {
			admission: recorder(checksum.Records{}), now: present, stale: true,
			want: reason.NotProvenFresh, findings: []checksum.Finding{notProven},
		},

		"rolling with every record true is nothing at all": {
			admission: roller(present.all()), now: present,
			want: reason.Kept, records: present.all(),
		},
		"rolling with every record true under an old key is nothing at all": {
			admission: roller(recorded(present.values(old, message, password, extra))), now: present,
			want: reason.Kept, records: recorded(present.values(old, message, password, extra)),
		},
		"rolling with one untrue stamps every reference, drops the baseline and prunes": {
			admission: roller(untrueAndStale), now: edited,
			want: reason.Stamped, records: stamped(edited.values(signing, message, password), edited.values(old, extra)),
		},
		"rolling with an untrue baseline stamps, though the stamp is true again": {
			admission: roller(checksum.Records{Stamps: present.all().Stamps, Baseline: edited.values(signing, message)}), now: present,
			want: reason.Stamped, records: present.all(),
		},
		"rolling when an optional source appears": {
			admission: roller(present.all()), now: withExtra,
			want: reason.Stamped, records: withExtra.all(),
		},
		"rolling when an optional source appears after adoption": {
			admission: roller(recorded(present.values(signing, message, password, extra))), now: withExtra,
			want: reason.Stamped, records: withExtra.all(),
		},
		"rolling when an optional source disappears": {
			admission: roller(withExtra.all()), now: present,
			want: reason.Stamped, records: present.all(),
		},
		"rolling a reference without a record gives it a baseline": {
			admission: roller(partly), now: present,
			want: reason.Recorded, records: checksum.Records{Stamps: partly.Stamps, Baseline: present.values(signing, password, extra)},
		},
		"rolling when a required source appears gives it a baseline": {
			admission: roller(stamped(present.values(signing, password, extra))), now: present,
			want: reason.Recorded, records: checksum.Records{Stamps: present.stamps(signing, password, extra), Baseline: present.values(signing, message)},
		},
		"rolling when a required key appears gives it a baseline": {
			admission: roller(stamped(present.values(signing, message, extra))), now: present,
			want: reason.Recorded, records: checksum.Records{Stamps: present.stamps(signing, message, extra), Baseline: present.values(signing, password)},
		},
		"rolling when a required source was deleted keeps its last stamp": {
			admission: roller(present.all()), now: noMessage,
			want: reason.Kept, records: present.all(), findings: []checksum.Finding{messageMissing},
		},
		"rolling when a deleted source comes back as it was is nothing at all": {
			admission: roller(present.all()), now: present,
			want: reason.Kept, records: present.all(),
		},
		"rolling when a deleted source comes back with other content": {
			admission: roller(present.all()), now: edited,
			want: reason.Stamped, records: edited.all(),
		},
		"one untrue is held while a required source is missing": {
			admission: roller(withExtra.all()), now: noMessage,
			want: reason.OnHold, records: withExtra.all(), findings: []checksum.Finding{messageMissing},
		},
		"one untrue is held while a required key is missing; what has no record gets a baseline": {
			admission: roller(stamped(edited.values(signing, message))), now: noKey,
			want: reason.OnHold, records: checksum.Records{Stamps: edited.stamps(signing, message), Baseline: present.values(signing, extra)}, findings: []checksum.Finding{passwordMissing},
		},
		"rolling replaces a record whose key is lost and restarts nothing": {
			admission: roller(recorded(present.values(lost, message), present.values(signing, password, extra))), now: edited,
			want: reason.Recorded, records: recorded(edited.values(signing, message, password, extra)), findings: []checksum.Finding{messageLost},
		},
		"a lost key beside an untrue record rolls": {
			admission: roller(stamped(present.values(lost, password), present.values(signing, message, extra))), now: edited,
			want: reason.Stamped, records: edited.all(),
		},
		"rolling without proof changes nothing, untrue or not": {
			admission: roller(present.all()), now: edited, stale: true,
			want: reason.NotProvenFresh, records: present.all(), findings: []checksum.Finding{notProven},
		},
		"a person's empty patch carries no stamps of another time": {
			admission: admissionCase{Asker: checksum.Roller, Held: present.all(), Sent: edited.all()}, now: present,
			want: reason.Kept, records: present.all(), findings: []checksum.Finding{foreignStamps},
		},
	} {
		t.Run(about, c.run)
	}
}

func mergedStamps(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, set := range sets {
		for key, value := range set {
			all[key] = value
		}
	}
	return all
}

// The row "UPDATE, anything else": such an update never restarts anything.
func TestDecideRestores(t *testing.T) {
	signing := key(2)
	held := checksum.Records{Stamps: present.stamps(signing, message), Baseline: present.values(signing, password)}
	for about, c := range map[string]decideCase{
		"a label changes nothing of ours": {
			admission: admissionCase{Held: held, Sent: held}, now: edited,
			want: reason.Kept, records: held,
		},
		"a workload without records gets none": {
			now: edited, want: reason.Kept,
		},
		"a client that sends the template without our stamps (peers.md, 14) gets them back": {
			admission: admissionCase{Held: held}, now: edited,
			want: reason.Restored, records: held,
		},
		"a client that sends no baseline gets it back": {
			admission: admissionCase{Held: held, Sent: checksum.Records{Stamps: held.Stamps}}, now: edited,
			want: reason.Restored, records: held,
		},
		"stamps of another time are put back, with a warning": {
			admission: admissionCase{Held: present.all(), Sent: edited.all()}, now: edited,
			want: reason.Restored, records: present.all(), findings: []checksum.Finding{foreignStamps},
		},
		"stamps for a workload that has none are taken away, with a warning": {
			admission: admissionCase{Sent: edited.all()}, now: edited,
			want: reason.Restored, findings: []checksum.Finding{foreignStamps},
		},
		"a baseline of another time is put back, with a warning": {
			admission: admissionCase{Held: held, Sent: checksum.Records{Stamps: held.Stamps, Baseline: edited.values(signing, message)}}, now: edited,
			want: reason.Restored, records: held, findings: []checksum.Finding{foreignStamps},
		},
		"records that are untrue, unreadable or of nothing are put back all the same": {
			admission: admissionCase{Held: checksum.Records{
				Stamps:   map[string]string{checksum.StampKey(message): "junk", "secret.configstamp.dev/gone": ""},
				Baseline: map[checksum.Source]string{{Kind: checksum.Secret, Name: "gone"}: "junk"},
			}}, now: edited,
			want: reason.Restored, records: checksum.Records{
				Stamps:   map[string]string{checksum.StampKey(message): "junk", "secret.configstamp.dev/gone": ""},
				Baseline: map[checksum.Source]string{{Kind: checksum.Secret, Name: "gone"}: "junk"},
			},
		},
		"no proof is needed": {
			admission: admissionCase{Held: held}, now: edited, stale: true,
			want: reason.Restored, records: held,
		},
	} {
		t.Run(about, c.run)
	}
}

func TestAnUpdateThatChangesNoTemplateNeedsNoContentAndNoKey(t *testing.T) {
	held := present.all()
	a := admissionCase{Held: held, Content: func(checksum.Source) *checksum.Content { panic("content was read") }}
	if a.NeedsContent() {
		t.Error("content is needed for a label")
	}
	if got := decide(nil, a); !got.Records.Equal(held) {
		t.Errorf("got %v", got.Records)
	}
	for about, a := range map[string]admissionCase{
		"create": {Create: true}, "template": {TemplateChanged: true}, "record": {Asker: checksum.Recorder}, "roll": {Asker: checksum.Roller},
	} {
		if !a.NeedsContent() {
			t.Errorf("%s: no content is needed", about)
		}
	}
}

func TestAskerOf(t *testing.T) {
	for manager, want := range map[string]checksum.Asker{
		"configstamp": checksum.Roller, "configstamp-record": checksum.Recorder, "configstamp-accept": checksum.Accepter,
		"": checksum.Anyone, "kubectl": checksum.Anyone, "Configstamp": checksum.Anyone, "configstamp-": checksum.Anyone, "configstamp-recorder": checksum.Anyone,
	} {
		if got := checksum.AskerOf(manager, false); got != want || got.Own() || got.Rolls() != (want == checksum.Roller || want == checksum.Accepter) {
			t.Errorf("%q: %d, want %d", manager, got, want)
		}
		ours := map[checksum.Asker]checksum.Asker{checksum.Roller: checksum.OwnRoller, checksum.Accepter: checksum.OwnRoller, checksum.Recorder: checksum.OwnRecorder}[want]
		if got := checksum.AskerOf(manager, true); got != ours || got.Own() != (ours != checksum.Anyone) || got.Rolls() != (ours == checksum.OwnRoller) {
			t.Errorf("%q by our own account: %d, want %d", manager, got, ours)
		}
	}
}

// A required source that does not count by policy holds a roll all the same:
// a rollout then could only break.
func TestDecideHoldsForWhatDoesNotCount(t *testing.T) {
	references := append(append([]checksum.Reference{}, reads...), mounted(checksum.Source{Kind: checksum.ConfigMap, Name: "unstamped"}))
	unstamped := references[len(references)-1].Source
	selections := checksum.Selections(references, checksum.DefaultPolicy(unstamped))
	now := world{message: text("a", "2"), password: text("password", "p")}
	admission := admissionCase{
		Namespace: namespace, Asker: checksum.Roller, Fresh: true, Selections: selections,
		Held: present.all(), Sent: present.all(),
		Content: func(s checksum.Source) *checksum.Content { return now[s] },
	}
	held := decide(ring, admission)
	if held.Outcome != reason.OnHold || !held.Records.Equal(present.all()) {
		t.Errorf("with %s missing: %s %v, want it held", unstamped, held.Outcome, held.Records)
	}
	now[unstamped] = text("k", "v")
	rolled := decide(ring, admission)
	if rolled.Outcome != reason.Stamped || !rolled.Records.Equal(edited.all()) {
		t.Errorf("with %s there: %s %v, want the others stamped and it left out", unstamped, rolled.Outcome, rolled.Records)
	}
}

// A changed template keeps a record that is not proven only if a change of what
// it references now would show in it; else that change would be lost.
func TestDecideKeepsUnprovenRecordsThatCover(t *testing.T) {
	signing := checksum.NewRing(key(2))
	was := text("a", "1", "b", "1")
	now := text("a", "1", "b", "2")
	read := func(references ...checksum.Reference) checksum.Selection {
		return checksum.Selections(references, checksum.DefaultPolicy())[0]
	}
	onlyA, both, all := read(env(message, "a")), read(env(message, "a"), env(message, "b")), read(envFrom(message))
	for about, c := range map[string]struct {
		recorded, wanted checksum.Selection
		kept             bool
	}{
		"written for the same keys":   {both, both, true},
		"written for all keys":        {all, both, true},
		"written for fewer keys":      {onlyA, both, false},
		"written for a list, all now": {both, all, false},
	} {
		t.Run(about, func(t *testing.T) {
			value := signing.Digest(namespace, c.recorded, was)
			held := checksum.Records{Stamps: map[string]string{checksum.StampKey(message): value}}
			decision := decide(signing, admissionCase{
				Namespace: namespace, TemplateChanged: true, Selections: []checksum.Selection{c.wanted},
				Held: held, Sent: held, Content: func(checksum.Source) *checksum.Content { return now },
			})
			want := signing.Digest(namespace, c.wanted, now)
			if c.kept {
				want = value
			}
			if got := decision.Records.Stamps[checksum.StampKey(message)]; got != want {
				t.Errorf("stamp %s, want %s", got, want)
			}
		})
	}
}
