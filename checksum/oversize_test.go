package checksum_test

import (
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

const (
	// hardLimit is what the API server lets the annotations of one object take.
	hardLimit = 256 << 10
	// limit is what they may take with ours.
	limit = 240 << 10
)

func sizeOfStamps(stamps map[string]string) (size int) {
	for key, value := range stamps {
		size += len(key) + len(value)
	}
	return size
}

func sizeOfBaseline(baseline map[checksum.Source]string) int {
	return len(checksum.BaselineAnnotation) + len(checksum.FormatBaseline(baseline))
}

func TestDecideOversize(t *testing.T) {
	tooLarge := checksum.Finding{Reason: reason.TooLarge}
	stamps, baseline := present.all().Stamps, present.values(key(2), message, password, extra)
	held := checksum.Records{Stamps: present.stamps(key(2), message), Baseline: present.values(key(2), password)}
	stampRoom, baselineRoom := limit-sizeOfStamps(stamps), limit-sizeOfBaseline(baseline)
	for about, c := range map[string]decideCase{
		"CREATE whose stamps just fit": {
			admission: admissionCase{Create: true, TemplateBytes: stampRoom}, now: present,
			want: reason.Stamped, records: present.all(),
		},
		"CREATE whose stamps do not fit goes without them, with a warning": {
			admission: admissionCase{Create: true, TemplateBytes: stampRoom + 1}, now: present,
			want: reason.TooLarge, findings: []checksum.Finding{tooLarge},
		},
		"CREATE with nothing of ours is none of our business, however large": {
			admission: admissionCase{Create: true, TemplateBytes: limit - sizeOfStamps(noMessage.stamps(key(2), extra)), WorkloadBytes: 10 * limit}, now: world{},
			want: reason.Stamped, records: checksum.Records{Stamps: noMessage.stamps(key(2), extra)},
			findings: []checksum.Finding{messageMissing, {Reason: reason.MissingSource, Source: password}},
		},
		"a changed template whose stamps do not fit goes without them": {
			admission: admissionCase{TemplateChanged: true, Held: held, TemplateBytes: limit}, now: present,
			want: reason.TooLarge, findings: []checksum.Finding{tooLarge},
		},
		"a baseline that just fits is recorded": {
			admission: admissionCase{Asker: checksum.Recorder, WorkloadBytes: baselineRoom}, now: present,
			want: reason.Recorded, records: checksum.Records{Baseline: baseline},
		},
		"a baseline that does not fit is not recorded": {
			admission: admissionCase{Asker: checksum.Recorder, WorkloadBytes: baselineRoom + 1}, now: present,
			want: reason.TooLarge, findings: []checksum.Finding{tooLarge},
		},
		"a roll whose stamps do not fit changes nothing": {
			admission: admissionCase{Asker: checksum.Roller, Held: held, TemplateBytes: stampRoom + 1}, now: edited,
			want: reason.TooLarge, records: held, findings: []checksum.Finding{tooLarge},
		},
		"a label that leaves no room for the baseline drops that, and never the stamps, for that would roll": {
			admission: admissionCase{Held: held, Sent: held, WorkloadBytes: limit}, now: present,
			want: reason.TooLarge, records: checksum.Records{Stamps: held.Stamps}, findings: []checksum.Finding{tooLarge},
		},
		"stamps on record that came close to the limit stay, for without them it would roll": {
			admission: admissionCase{Held: held, Sent: held, TemplateBytes: hardLimit - sizeOfStamps(held.Stamps)}, now: present,
			want: reason.Kept, records: held,
		},
		"stamps on record that came close to the limit keep no baseline from being recorded": {
			admission: admissionCase{Asker: checksum.Recorder, Held: checksum.Records{Stamps: held.Stamps}, TemplateBytes: hardLimit - sizeOfStamps(held.Stamps)}, now: present,
			want: reason.Recorded, records: checksum.Records{Stamps: held.Stamps, Baseline: present.values(key(2), password, extra)},
		},
	} {
		t.Run(about, c.run)
	}
}
