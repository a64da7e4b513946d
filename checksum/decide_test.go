package checksum_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

// world is a workload that reads all of message and key "password" of
// password, and perhaps extra; and what the sources hold.
type world map[checksum.Source]*checksum.Content

var (
	extra     = checksum.Source{Kind: checksum.ConfigMap, Name: "web-extra"}
	reads     = []checksum.Reference{envFrom(message), env(password, "password"), optional(envFrom(extra))}
	ring      = checksum.NewRing(key(2), key(1))
	present   = world{message: text("a", "1"), password: text("password", "p")}
	edited    = world{message: text("a", "2"), password: text("password", "p")}
	withExtra = world{message: text("a", "1"), password: text("password", "p"), extra: text("x", "1")}
	noMessage = world{password: text("password", "p")}
	noKey     = world{message: text("a", "1"), password: text("user", "u")}
)

// values are what the sources of the world are written as.
func (w world) values(k checksum.Key, sources ...checksum.Source) map[checksum.Source]string {
	values := map[checksum.Source]string{}
	for _, s := range checksum.Selections(reads, checksum.DefaultPolicy()) {
		for _, source := range sources {
			if s.Source == source {
				values[source] = checksum.NewRing(k).Digest(namespace, s, w[source])
			}
		}
	}
	return values
}

func (w world) stamps(k checksum.Key, sources ...checksum.Source) map[string]string {
	return stampsOf(w.values(k, sources...))
}

func stampsOf(values map[checksum.Source]string) map[string]string {
	stamps := map[string]string{}
	for source, value := range values {
		stamps[checksum.StampKey(source)] = value
	}
	return stamps
}

// all is the stamps of everything under the signing key.
func (w world) all() checksum.Records {
	return checksum.Records{Stamps: w.stamps(key(2), message, password, extra)}
}

type decideCase struct {
	admission admissionCase // Selections, Content and Namespace are filled in
	now       world
	stale     bool // freshness could not be proven
	want      reason.Reason
	records   checksum.Records
	findings  []checksum.Finding
}

func (c *decideCase) run(t *testing.T) {
	t.Helper()
	a := c.admission
	a.Namespace, a.Fresh = namespace, !c.stale
	a.Selections = checksum.Selections(reads, checksum.DefaultPolicy())
	a.Content = func(s checksum.Source) *checksum.Content { return c.now[s] }
	held, sent := cloned(a.Held), cloned(a.Sent)
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
	if !a.Held.Equal(held) || !a.Sent.Equal(sent) {
		t.Error("the records of the request were changed in place")
	}
	// A reinvocation sees what was decided as sent.
	a.Sent = got.Records
	if again := decide(ring, a); !again.Records.Equal(got.Records) {
		t.Errorf("decided again, the records differ (-first +again):\n%s", cmp.Diff(got.Records, again.Records))
	}
	if got.Outcome == reason.TooLarge {
		return
	}
	// Stored, it stays: for anyone, and its stamps for a recording too.
	next := a
	next.Create, next.TemplateChanged, next.Held = false, false, got.Records
	next.Asker = checksum.Anyone
	if again := decide(ring, next); !again.Records.Equal(got.Records) {
		t.Errorf("after anyone's next update, the records differ (-first +again):\n%s", cmp.Diff(got.Records, again.Records))
	}
	next.Asker = checksum.Recorder
	if again := decide(ring, next); !maps.Equal(again.Records.Stamps, got.Records.Stamps) {
		t.Errorf("after the next recording, the stamps differ (-first +again):\n%s", cmp.Diff(got.Records, again.Records))
	}
}

func cloned(r checksum.Records) checksum.Records {
	return checksum.Records{Stamps: maps.Clone(r.Stamps), Baseline: maps.Clone(r.Baseline)}
}

var (
	messageMissing  = checksum.Finding{Reason: reason.MissingSource, Source: message}
	passwordMissing = checksum.Finding{Reason: reason.MissingKey, Source: password, Key: "password"}
	messageLost     = checksum.Finding{Reason: reason.LostRecord, Source: message}
	foreignStamps   = checksum.Finding{Reason: reason.ForeignStamps}
	notProven       = checksum.Finding{Reason: reason.NotProvenFresh}
)

// The rows CREATE and "the requester changed the template" of the design's
// table, and the sentences below it that speak of them.
func TestDecideStamps(t *testing.T) {
	signing, old := key(2), key(1)
	for about, c := range map[string]decideCase{
		"CREATE stamps every reference, an absent optional source too": {
			admission: admissionCase{Create: true}, now: present,
			want: reason.Stamped, records: present.all(),
		},
		"CREATE with a missing source leaves it out and says so": {
			admission: admissionCase{Create: true}, now: noMessage,
			want: reason.Stamped, records: checksum.Records{Stamps: noMessage.stamps(signing, password, extra)}, findings: []checksum.Finding{messageMissing},
		},
		"CREATE with a missing key leaves the whole source out and says so": {
			admission: admissionCase{Create: true}, now: noKey,
			want: reason.Stamped, records: checksum.Records{Stamps: noKey.stamps(signing, message, extra)}, findings: []checksum.Finding{passwordMissing},
		},
		"CREATE that cannot prove freshness takes the cache": {
			admission: admissionCase{Create: true}, now: present, stale: true,
			want: reason.Stamped, records: present.all(),
		},
		"CREATE by kubectl --field-manager=configstamp is a CREATE": {
			admission: admissionCase{Create: true, Asker: checksum.Roller}, now: present,
			want: reason.Stamped, records: present.all(),
		},
		"CREATE does not believe the stamps of an exported manifest": {
			admission: admissionCase{Create: true, Sent: edited.all()}, now: present,
			want: reason.Stamped, records: present.all(), findings: []checksum.Finding{foreignStamps},
		},
		"CREATE with stamps that happen to be true warns of nothing": {
			admission: admissionCase{Create: true, Sent: present.all()}, now: present,
			want: reason.Stamped, records: present.all(),
		},
		"CREATE drops a baseline that was sent": {
			admission: admissionCase{Create: true, Sent: checksum.Records{Baseline: present.values(signing, message)}}, now: present,
			want: reason.Stamped, records: present.all(), findings: []checksum.Finding{foreignStamps},
		},

		"a changed template is stamped with what is true now, and the baseline is dropped": {
			admission: admissionCase{TemplateChanged: true, Held: checksum.Records{Stamps: present.stamps(signing, password), Baseline: present.values(signing, message, extra)}}, now: edited,
			want: reason.Stamped, records: edited.all(),
		},
		"a changed template drops an equal baseline too: its value becomes the stamp": {
			admission: admissionCase{TemplateChanged: true, Held: checksum.Records{Baseline: present.values(old, message, password, extra)}}, now: present,
			want: reason.Stamped, records: checksum.Records{Stamps: present.stamps(old, message, password, extra)},
		},
		"a changed template prunes what is no longer referenced": {
			admission: admissionCase{TemplateChanged: true, Held: checksum.Records{
				Stamps:   map[string]string{"configmap.configstamp.dev/gone": checksum.Absent},
				Baseline: map[checksum.Source]string{{Kind: checksum.Secret, Name: "gone"}: checksum.Absent},
			}}, now: present,
			want: reason.Stamped, records: present.all(),
		},
		"a value that still verifies under an old key stays as it is; the others are signed anew": {
			admission: admissionCase{TemplateChanged: true, Held: checksum.Records{Stamps: present.stamps(old, message, password)}}, now: edited,
			want:    reason.Stamped,
			records: checksum.Records{Stamps: stampsOf(union(present.values(old, password), edited.values(signing, message, extra)))},
		},
		"a deleted source goes unstamped when the template changes": {
			admission: admissionCase{TemplateChanged: true, Held: present.all()}, now: noMessage,
			want: reason.Stamped, records: checksum.Records{Stamps: present.stamps(signing, password, extra)}, findings: []checksum.Finding{messageMissing},
		},
		"rollout undo to other stamps gets those of today, with a warning": {
			admission: admissionCase{TemplateChanged: true, Held: edited.all(), Sent: present.all()}, now: edited,
			want: reason.Stamped, records: edited.all(), findings: []checksum.Finding{foreignStamps},
		},
		"a changed template without proof keeps what is on record and takes the cache for the rest": {
			admission: admissionCase{TemplateChanged: true, Held: checksum.Records{Stamps: present.stamps(old, message), Baseline: present.values(signing, extra)}}, now: edited, stale: true,
			want:    reason.Stamped,
			records: checksum.Records{Stamps: stampsOf(union(present.values(old, message), present.values(signing, extra), edited.values(signing, password)))},
		},
		"without proof the baseline on record wins over the stamp": {
			admission: admissionCase{TemplateChanged: true, Held: checksum.Records{Stamps: present.all().Stamps, Baseline: edited.values(signing, message)}}, now: present, stale: true,
			want: reason.Stamped, records: edited.all(),
		},
		"the controller's patch beside another webhook's change of the template stamps": {
			admission: admissionCase{TemplateChanged: true, Asker: checksum.Roller, Held: present.all()}, now: edited,
			want: reason.Stamped, records: edited.all(),
		},
		"an unreadable stamp is written anew when the template changes": {
			admission: admissionCase{TemplateChanged: true, Held: checksum.Records{Stamps: map[string]string{checksum.StampKey(message): "junk"}}}, now: present,
			want: reason.Stamped, records: present.all(),
		},
	} {
		t.Run(about, c.run)
	}
}

func union(sets ...map[checksum.Source]string) map[checksum.Source]string {
	all := map[checksum.Source]string{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return all
}
