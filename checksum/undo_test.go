package checksum_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// The workload of decide_test.go, which pins: its message goes from present to edited, an
// undo brings it back, and its password is a Secret, which is never pinned.

var (
	thirdly  = world{message: text("a", "3"), password: text("password", "p")}
	fourthly = world{message: text("a", "4"), password: text("password", "p")}
	// editedExtra is withExtra, both of its ConfigMaps edited.
	editedExtra = world{message: text("a", "2"), password: text("password", "p"), extra: text("x", "2")}
	newPass     = world{message: text("a", "2"), password: text("password", "q")}
)

func pinningPolicy() checksum.Policy {
	policy := checksum.DefaultPolicy()
	policy.Pin = true
	return policy
}

// pins are those of the message, and of the extra where there is one.
func (w world) pins(k checksum.Key) checksum.Pins {
	pins := checksum.Pins{}
	for _, source := range []checksum.Source{message, extra} {
		if w[source] != nil {
			pins[source] = checksum.Pin{Snapshot: checksum.NewRing(k).SnapshotName(namespace, source, w[source]), Uses: []checksum.Use{checksum.Startup}}
		}
	}
	return pins
}

// pinned is what a template carries that was stamped and pinned in this world.
func (w world) pinned() checksum.Records {
	records := w.all()
	records.Pins = map[string]string{checksum.PinsAnnotation: w.pins(key(2)).String()}
	return records
}

// declining is records with messages that were declined, the newest first.
func declining(records checksum.Records, worlds ...world) checksum.Records {
	declined := checksum.Declined{}
	for _, w := range worlds {
		declined[message] = append(declined[message], w.values(key(2), message)[message])
	}
	records.Declined = declined.String()
	return records
}

func unproven(a admissionCase) admissionCase {
	a.UndoUnknown = true
	return a
}

type pinCase struct {
	admission admissionCase // what TestPins fills in is missing
	policy    func(*checksum.Policy)
	off       bool // the process does not pin
	now       world
	stale     bool
	want      reason.Reason
	records   checksum.Records
	findings  []checksum.Finding
	// makes are the sources whose snapshots must exist before the answer.
	makes []checksum.Source
}

func (c *pinCase) run(t *testing.T) {
	t.Helper()
	a := c.admission
	a.Namespace, a.Fresh, a.References, a.Pinning = namespace, !c.stale, reads, !c.off
	a.Policy = pinningPolicy()
	if c.policy != nil {
		c.policy(&a.Policy)
	}
	a.Selections = checksum.Selections(reads, a.Policy)
	a.Content = func(s checksum.Source) *checksum.Content { return c.now[s] }
	got := decide(ring, a)
	if got.Outcome != c.want {
		t.Errorf("outcome %s, want %s", got.Outcome, c.want)
	}
	if !got.Records.Equal(c.records) {
		t.Errorf("records differ (-want +got):\n%s", cmp.Diff(c.records, got.Records))
	}
	if diff := cmp.Diff(c.findings, got.Findings); diff != "" && len(c.findings)+len(got.Findings) > 0 {
		t.Errorf("findings differ (-want +got):\n%s", diff)
	}
	if made := slices.SortedFunc(maps.Keys(got.NewPins), checksum.Source.Compare); !slices.Equal(made, c.makes) {
		t.Errorf("snapshots of %v must exist, want %v", made, c.makes)
	}
	// Another webhook changes the object, and we are asked again with our own answer.
	a.Sent = got.Records
	if again := decide(ring, a); !again.Records.Equal(got.Records) {
		t.Errorf("decided again, the records differ (-first +again):\n%s", cmp.Diff(got.Records, again.Records))
	}
	// Stored, it stays, whoever writes next, with pins and without.
	a.Undo, a.UndoLost, a.UndoMixed, a.UndoUnknown, a.Accepts, a.Create, a.TemplateChanged = false, false, false, false, false, false, false
	for _, a.Pinning = range []bool{true, false} {
		for _, a.Asker = range []checksum.Asker{checksum.Anyone, checksum.Recorder} {
			if a.Held = got.Records; !maps.Equal(decide(ring, a).Records.Pins, got.Records.Pins) {
				t.Errorf("the pins do not stay, asker %d", a.Asker)
			}
		}
	}
}

var (
	changedTemplate = admissionCase{TemplateChanged: true}
	restarted       = admissionCase{TemplateChanged: true, AnnotationsOnly: true}
	created         = admissionCase{Create: true}
	rolling         = admissionCase{Asker: checksum.Roller}
	recording       = admissionCase{Asker: checksum.Recorder}
	accepting       = admissionCase{Asker: checksum.Roller, Accepts: true}
	then            = time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
)

func held(a admissionCase, records checksum.Records) admissionCase {
	a.Held, a.Sent = records, records
	return a
}

// undoing is an undo from what is held to what is sent.
func undoing(held, sent checksum.Records) admissionCase {
	return admissionCase{Undo: true, Held: held, Sent: sent, MadeAt: func(checksum.Source) time.Time { return then }}
}

func told(reason reason.Reason, source checksum.Source, text string) checksum.Finding {
	return checksum.Finding{Reason: reason, Source: source, Text: text}
}

const unprovenText = "its present content could not be verified in time"

func extraAlone(message, extraOf world) checksum.Records {
	records := message.all()
	records.Stamps[checksum.StampKey(extra)] = extraOf.all().Stamps[checksum.StampKey(extra)]
	records.Pins = map[string]string{checksum.PinsAnnotation: checksum.Pins{extra: extraOf.pins(key(2))[extra]}.String()}
	return records
}

func back(source checksum.Source) checksum.Finding {
	return told(reason.UndoTaken, source, "2026-11-22T03:04:05Z")
}

// "Undo", the page of pins.md.
func TestUndo(t *testing.T) {
	baseline := edited.pinned()
	baseline.Baseline = edited.values(key(2), message)
	mixed := stampsOf(union(present.values(key(2), message), newPass.values(key(2), password, extra)))
	for about, c := range map[string]pinCase{
		"an undo of our own roll goes back to its content, and declines that of today": {
			admission: undoing(edited.pinned(), present.pinned()), now: edited, want: reason.UndoTaken, records: declining(present.pinned(), edited), findings: []checksum.Finding{back(message)},
		},
		"so does one that changes the image": {
			admission: func() admissionCase {
				a := undoing(edited.pinned(), present.pinned())
				a.TemplateChanged = true
				return a
			}(), now: edited, want: reason.UndoTaken, records: declining(present.pinned(), edited), findings: []checksum.Finding{back(message)},
		},
		"a held workload that is undone to equal stamps does not take the new content": {
			admission: func() admissionCase {
				a := undoing(present.pinned(), present.pinned())
				a.TemplateChanged = true
				return a
			}(), now: edited, want: reason.UndoTaken, records: declining(present.pinned(), edited), findings: []checksum.Finding{back(message)},
		},
		"what is not pinned is stamped with what is true now": {
			admission: undoing(newPass.pinned(), present.pinned()), now: newPass, want: reason.UndoTaken,
			records:  declining(checksum.Records{Stamps: mixed, Pins: present.pinned().Pins}, edited),
			findings: []checksum.Finding{back(message), {Reason: reason.NotUndone, Source: password}},
		},
		"a baseline is dropped: the stamp that went back counts": {
			admission: undoing(baseline, present.pinned()), now: edited, want: reason.UndoTaken, records: declining(present.pinned(), edited), findings: []checksum.Finding{back(message)},
		},
		"what is declined in the request is not believed": {
			admission: undoing(edited.pinned(), declining(present.pinned(), thirdly)), now: edited, want: reason.UndoTaken, records: declining(present.pinned(), edited),
			findings: []checksum.Finding{back(message)},
		},
		"an undo of an undo takes what was declined, and declines nothing": {
			admission: undoing(declining(present.pinned(), edited), edited.pinned()), now: edited, want: reason.UndoTaken, records: edited.pinned(),
		},
		"two steps back, the content of one step back stays declined": {
			admission: undoing(declining(edited.pinned(), thirdly), present.pinned()), now: edited, want: reason.UndoTaken, records: declining(present.pinned(), edited, thirdly),
			findings: []checksum.Finding{back(message)},
		},
		"of a source the last three are kept": {
			admission: undoing(declining(edited.pinned(), thirdly, fourthly, newPass), present.pinned()), now: world{message: text("a", "5"), password: text("password", "p")}, want: reason.UndoTaken,
			records: declining(present.pinned(), world{message: text("a", "5")}, thirdly, fourthly), findings: []checksum.Finding{back(message)},
		},
		"what is declined already is declined once, and is the newest then": {
			admission: undoing(declining(thirdly.pinned(), fourthly, edited), present.pinned()), now: edited, want: reason.UndoTaken, records: declining(present.pinned(), edited, fourthly),
			findings: []checksum.Finding{back(message)},
		},
		"a source that is gone stays at the content of then": {
			admission: undoing(edited.pinned(), present.pinned()), now: noMessage, want: reason.UndoTaken, records: func() checksum.Records {
				records := present.pinned()
				records.Declined = checksum.Declined{message: {checksum.Absent}}.String()
				return records
			}(), findings: []checksum.Finding{back(message)},
		},
		"without proof an undo is believed, and declines what memory holds": {
			admission: undoing(thirdly.pinned(), present.pinned()), now: edited, stale: true, want: reason.UndoTaken, records: declining(present.pinned(), edited), findings: []checksum.Finding{back(message)},
		},
		"where nothing pins, an undo is not believed": {
			admission: undoing(edited.pinned(), present.pinned()), now: edited, policy: func(p *checksum.Policy) { p.Pin = false }, want: reason.Restored, records: edited.pinned(),
			findings: []checksum.Finding{foreignStamps},
		},
		"an undo to a revision without pins is answered as without pins": {
			admission: undoing(edited.pinned(), present.all()), now: edited, want: reason.Restored, records: edited.pinned(), findings: []checksum.Finding{foreignStamps},
		},
		"in a process without pins, an undo is not believed": {
			admission: undoing(edited.pinned(), present.pinned()), now: edited, off: true, want: reason.Restored, records: edited.pinned(), findings: []checksum.Finding{foreignStamps},
		},
		"an undo to declined content ends that": {
			admission: undoing(declining(edited.pinned(), present, fourthly), present.pinned()), now: thirdly, want: reason.UndoTaken, records: declining(present.pinned(), thirdly, fourthly),
			findings: []checksum.Finding{back(message)},
		},
		"declined content of a source that was not pinned then is taken": {
			admission: undoing(declining(withExtra.pinned(), edited), extraAlone(withExtra, withExtra)), now: editedExtra, want: reason.UndoTaken,
			records: func() checksum.Records {
				records := extraAlone(editedExtra, withExtra)
				values := editedExtra.values(key(2), message, extra)
				records.Declined = checksum.Declined{message: {values[message]}, extra: {values[extra]}}.String()
				return records
			}(), findings: []checksum.Finding{back(extra), {Reason: reason.NotUndone, Source: message}},
		},
		"if a snapshot is gone, it is answered as without pins": {
			admission: admissionCase{UndoLost: true, Held: edited.pinned(), Sent: present.pinned()}, now: edited, want: reason.Restored, records: edited.pinned(),
			findings: []checksum.Finding{{Reason: reason.UndoLost}},
		},
		"what is almost an undo is told so": {
			admission: admissionCase{UndoMixed: true, TemplateChanged: true, Held: edited.pinned(), Sent: present.pinned()}, now: edited, want: reason.Stamped, records: edited.pinned(),
			findings: []checksum.Finding{{Reason: reason.UndoMixed}}, makes: []checksum.Source{message},
		},
		"where the revisions cannot be read, all on record stays": {
			admission: unproven(held(changedTemplate, declining(present.pinned(), edited))), now: edited, want: reason.Stamped, records: declining(present.pinned(), edited),
			findings: []checksum.Finding{{Reason: reason.DeclinedKept, Source: message}, {Reason: reason.UndoUnknown}},
		},
		"also where nothing is declined": {
			admission: unproven(held(changedTemplate, present.pinned())), now: edited, want: reason.Stamped, records: present.pinned(),
			findings: []checksum.Finding{{Reason: reason.UndoUnknown}},
		},
		"stamps in a request that is no undo are ignored": {
			admission: admissionCase{Held: edited.pinned(), Sent: present.pinned()}, now: edited, want: reason.Restored, records: edited.pinned(), findings: []checksum.Finding{foreignStamps},
		},
	} {
		t.Run(about, c.run)
	}
}

// "Declined", the page of pins.md.
func TestDeclined(t *testing.T) {
	kept := checksum.Finding{Reason: reason.DeclinedKept, Source: message}
	undone := declining(present.pinned(), edited)
	rolledBeside := checksum.Records{Stamps: stampsOf(union(present.values(key(2), message), newPass.values(key(2), password, extra))), Pins: present.pinned().Pins, Declined: undone.Declined}
	bare := checksum.Records{Stamps: undone.Stamps, Declined: undone.Declined}
	garbage := present.pinned()
	garbage.Declined = "{"
	for about, c := range map[string]pinCase{
		"declined content is rolled by nobody, and a warning says how it is taken after all": {
			admission: held(rolling, undone), now: edited, want: reason.OnHold, records: undone, findings: []checksum.Finding{kept},
		},
		"a recording writes no baseline of it": {
			admission: held(recording, undone), now: edited, want: reason.Kept, records: undone,
		},
		"a roll for another source leaves it where it is": {
			admission: held(rolling, undone), now: newPass, want: reason.Stamped, records: rolledBeside, findings: []checksum.Finding{kept},
		},
		"so does a restart": {
			admission: held(restarted, undone), now: newPass, want: reason.Stamped, records: rolledBeside, findings: []checksum.Finding{kept},
		},
		"a restart keeps it while its source is gone": {
			admission: held(restarted, func() checksum.Records {
				records := present.pinned()
				records.Declined = checksum.Declined{message: {checksum.Absent}}.String()
				return records
			}()), now: noMessage, want: reason.Stamped, records: func() checksum.Records {
				records := present.pinned()
				records.Declined = checksum.Declined{message: {checksum.Absent}}.String()
				return records
			}(), findings: []checksum.Finding{kept},
		},
		"any other changed template takes what is true now, and nothing is declined any more": {
			admission: held(changedTemplate, undone), now: edited, want: reason.Stamped, records: edited.pinned(), makes: []checksum.Source{message},
			findings: []checksum.Finding{{Reason: reason.DeclinedCleared, Source: message}},
		},
		"where the content has changed since, there is nothing to tell of": {
			admission: held(changedTemplate, undone), now: thirdly, want: reason.Stamped, records: thirdly.pinned(), makes: []checksum.Source{message},
		},
		"it ends when the content changes, and stays on record": {
			admission: held(rolling, undone), now: thirdly, want: reason.Stamped, records: declining(thirdly.pinned(), edited), makes: []checksum.Source{message},
		},
		"content that comes back is refused again": {
			admission: held(rolling, declining(thirdly.pinned(), edited)), now: edited, want: reason.OnHold, records: declining(thirdly.pinned(), edited), findings: []checksum.Finding{kept},
		},
		"content that is taken back to what is on record is true": {
			admission: held(rolling, undone), now: present, want: reason.Kept, records: undone,
		},
		"somebody accepts it": {
			admission: held(accepting, undone), now: edited, want: reason.Stamped, records: edited.pinned(), makes: []checksum.Source{message},
		},
		"what was accepted stays so where the roll is held": {
			admission: held(accepting, undone), now: edited, policy: func(p *checksum.Policy) { p.Faults = []checksum.Fault{{Key: "x"}} }, want: reason.OnHold, records: present.pinned(),
			findings: []checksum.Finding{checksum.Fault{Key: "x"}.Finding()},
		},
		"what was accepted stays so where nothing is proven": {
			admission: held(accepting, undone), now: edited, stale: true, want: reason.NotProvenFresh, records: present.pinned(), findings: []checksum.Finding{notProven},
		},
		"our own account accepts nothing": {
			admission: held(admissionCase{Asker: checksum.Roller, Accepts: true, Own: true}, undone), now: edited, want: reason.OnHold, records: undone,
			findings: []checksum.Finding{kept},
		},
		"it binds where pins are switched off": {
			admission: held(rolling, undone), now: edited, policy: func(p *checksum.Policy) { p.Pin = false }, want: reason.OnHold, records: undone, findings: []checksum.Finding{kept},
		},
		"a restart keeps its pin as well, though the policy pins no more: pods have what the stamp says": {
			admission: held(restarted, undone), now: newPass, policy: func(p *checksum.Policy) { p.Pin = false }, want: reason.Stamped, records: rolledBeside, findings: []checksum.Finding{kept},
		},
		"it holds a stamp that has no pin": {
			admission: held(rolling, bare), now: edited, want: reason.OnHold, records: bare, findings: []checksum.Finding{kept},
		},
		"what cannot be read declines nothing": {
			admission: held(rolling, garbage), now: edited, want: reason.Stamped, makes: []checksum.Source{message}, records: func() checksum.Records {
				records := edited.pinned()
				records.Declined = "{"
				return records
			}(),
		},
		"a missing source still holds all": {
			admission: held(rolling, undone), now: world{message: nil, password: text("password", "q")}, want: reason.OnHold, records: undone, findings: []checksum.Finding{messageMissing},
		},
		"an update of anything else leaves it alone": {
			admission: admissionCase{Held: undone, Sent: present.pinned()}, now: edited, want: reason.Restored, records: undone,
		},
	} {
		t.Run(about, c.run)
	}
}

func TestAnUndoNeedsContent(t *testing.T) {
	if a := (admissionCase{Undo: true}); !a.NeedsContent() {
		t.Error("an undo of our own roll changes no template, and is decided without content")
	}
}
