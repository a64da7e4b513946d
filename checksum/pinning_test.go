package checksum_test

import (
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// "On a workload that pins", the pages of pins.md.
func TestPins(t *testing.T) {
	someKeys := checksum.Records{Stamps: present.stamps(key(1), message, password, extra), Pins: map[string]string{checksum.PinsAnnotation: present.pins(key(1)).String()}}
	for about, c := range map[string]pinCase{
		"CREATE stamps and pins, and the snapshot has to be made first": {
			admission: created, now: present, want: reason.Stamped, records: present.pinned(), makes: []checksum.Source{message},
		},
		"an optional source is pinned where it exists": {
			admission: created, now: withExtra, want: reason.Stamped, records: withExtra.pinned(), makes: []checksum.Source{extra, message},
		},
		"without the policy there are no pins": {
			admission: created, now: present, policy: func(p *checksum.Policy) { p.Pin = false }, want: reason.Stamped, records: present.all(),
		},
		"without the policy they go when the template is stamped anyway": {
			admission: held(changedTemplate, present.pinned()), now: present, policy: func(p *checksum.Policy) { p.Pin = false }, want: reason.Stamped, records: present.all(),
		},
		"to switch pins off restarts nothing": {
			admission: held(rolling, present.pinned()), now: present, policy: func(p *checksum.Policy) { p.Pin = false }, want: reason.Kept, records: present.pinned(),
		},
		"to switch pins on restarts nothing": {
			admission: held(rolling, present.all()), now: present, want: reason.Kept, records: present.all(),
		},
		"mode observe pins nothing": {
			admission: created, now: withExtra, policy: func(p *checksum.Policy) { p.Observe = true }, want: reason.Stamped, records: withExtra.all(),
			findings: []checksum.Finding{{Reason: reason.NotPinned, Text: "mode is observe"}},
		},
		"what is not proven is not pinned": {
			admission: created, now: present, stale: true, want: reason.Stamped, records: present.all(),
			findings: []checksum.Finding{told(reason.NotPinned, message, unprovenText)},
		},
		"without proof a pin on record stays beside its stamp on record": {
			admission: held(changedTemplate, present.pinned()), now: edited, stale: true, want: reason.Stamped, records: present.pinned(),
		},
		"without proof a pin on record goes where a baseline has become the stamp": {
			admission: held(changedTemplate, checksum.Records{Stamps: present.pinned().Stamps, Pins: present.pinned().Pins, Baseline: edited.values(key(2), message)}),
			now:       edited, stale: true, want: reason.Stamped, records: edited.all(), findings: []checksum.Finding{told(reason.NotPinned, message, unprovenText)},
		},
		"a changed template takes a fresh snapshot": {
			admission: held(changedTemplate, present.pinned()), now: edited, want: reason.Stamped, records: edited.pinned(), makes: []checksum.Source{message},
		},
		"a snapshot on record stays under its old key while it stands for the content": {
			admission: held(changedTemplate, someKeys), now: present, want: reason.Stamped, records: someKeys, makes: []checksum.Source{message},
		},
		"a roll stamps and pins": {
			admission: held(rolling, present.pinned()), now: edited, want: reason.Stamped, records: edited.pinned(), makes: []checksum.Source{message},
		},
		"a missing source is not pinned": {
			admission: held(changedTemplate, present.pinned()), now: noMessage, want: reason.Stamped, records: checksum.Records{Stamps: noMessage.stamps(key(2), password, extra)},
			findings: []checksum.Finding{messageMissing},
		},
		"pins in a request are not believed": {
			admission: admissionCase{Create: true, Sent: edited.pinned()}, now: present, want: reason.Stamped, records: present.pinned(), makes: []checksum.Source{message},
			findings: []checksum.Finding{foreignStamps},
		},
		"a setting that cannot be read pins nothing and holds nothing": {
			admission: held(rolling, present.pinned()), now: edited, want: reason.Stamped, records: edited.all(),
			policy: func(p *checksum.Policy) {
				*p = p.With(checksum.Level{Origin: checksum.OfWorkload, Annotations: map[string]string{"configstamp.dev/pin": "yes"}})
			},
			findings: []checksum.Finding{{Reason: reason.PinUnreadable, Text: `configstamp.dev/pin: "yes": want false or true`}},
		},
		"a process without pins keeps what is on record beside its stamps": {
			admission: held(changedTemplate, present.pinned()), now: present, off: true, want: reason.Stamped, records: present.pinned(),
		},
		"and drops it where a stamp is another": {
			admission: held(rolling, present.pinned()), now: edited, off: true, want: reason.Stamped, records: edited.all(),
		},
		"annotations that would be too large go without pins, and keep their stamps": {
			admission: admissionCase{Create: true, TemplateBytes: 240<<10 - 300}, now: present, want: reason.Stamped, records: present.all(),
			findings: []checksum.Finding{{Reason: reason.NotPinned, Text: "with its pins, the annotations would exceed 240 KiB"}},
		},
	} {
		t.Run(about, c.run)
	}
}
