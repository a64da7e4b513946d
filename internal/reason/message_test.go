package reason_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/reason/reasontest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]reason.Message{
		"configstamp: in-step: in other words": {Code: "in-step", Sentence: "in other words"},
		"configstamp: of-a-newer-release: x":   {Code: "of-a-newer-release", Sentence: "x"},
		"configstamp: panic: configmap: x":     {Code: "panic", Sentence: "configmap: x"},
		"configstamp: missing-source: configmap/web.de is away: alas": {Code: "missing-source", Source: "configmap/web.de",
			Sentence: "configmap/web.de is away: alas"},
		"configstamp: lost-record: secret/db: alas": {Code: "lost-record", Source: "secret/db", Sentence: "secret/db: alas"},
		`configstamp: missing-key: secret/db key "a \" b: c" is away`: {Code: "missing-key", Source: "secret/db", Key: `a " b: c`,
			Sentence: `secret/db key "a \" b: c" is away`},
		"configstamp: missing-key: secret/db key a is away": {Code: "missing-key", Source: "secret/db", Sentence: "secret/db key a is away"},
		"configstamp: blocked: metadata.labels, spec.paused: another": {Code: "blocked", Fields: []string{"metadata.labels", "spec.paused"},
			Sentence: "metadata.labels, spec.paused: another"},
		"configstamp: blocked: another":         {Code: "blocked", Sentence: "another"},
		"configstamp: in-step":                  {},
		"configstamp: : x":                      {},
		"configstamp: and 3 more":               {},
		"configstamp: In words: x":              {},
		"in-step: of another webhook":           {},
		"another webhook: configstamp: panic: ": {},
		"another webhook: in-step: x":           {},
		"":                                      {},
	} {
		got, ok := reason.Parse(text)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want.Code != "") {
			t.Errorf("%q: %t, %s", text, ok, diff)
		}
	}
}

// Each reason is read back from its warning, with its source and its key, and no sentence is needed for it.
func TestParse_ReadsEveryWarning(t *testing.T) {
	of := reason.Values{Source: "configmap/web", Key: "a key", Text: "some text"}
	for i, row := range reason.Rows() {
		if rest := strings.TrimPrefix(strings.TrimPrefix(row.Sentence, "{source}"), " key {key} "); strings.Contains(rest, "{source}") || strings.Contains(rest, "{key}") {
			t.Errorf("%s has a source or a key that Parse does not find: %s", row.Code, row.Sentence)
		}
		warning := (reason.NoReason + 1 + reason.Reason(i)).Warning(of)
		want := reason.Message{Code: row.Code, Sentence: strings.TrimPrefix(warning, "configstamp: "+row.Code+": ")}
		if strings.HasPrefix(row.Sentence, "{source}") {
			want.Source = of.Source
		}
		if strings.Contains(row.Sentence, "{key}") {
			want.Key = of.Key
		}
		got, ok := reason.Parse(warning)
		if got.Fields = nil; !ok || !cmp.Equal(got, want) {
			t.Errorf("%q: %s", warning, cmp.Diff(want, got))
		}
		scrambled, _ := reason.Parse(reasontest.Scramble(warning))
		if got.Sentence, scrambled.Sentence = "", ""; !cmp.Equal(got, scrambled) {
			t.Errorf("%q, scrambled: %s", warning, cmp.Diff(got, scrambled))
		}
		if without := (reason.NoReason + 1 + reason.Reason(i)).Sentence(reason.Values{}); strings.HasPrefix(without, ":") || strings.Contains(without, "{") {
			t.Errorf("%s without values reads %q", row.Code, without)
		}
	}
}

func TestAmong(t *testing.T) {
	lost := func(source string) string { return reason.LostRecord.Warning(reason.Values{Source: source}) }
	warnings := []string{"another webhook", lost("secret/a"), reason.TooLarge.Warning(reason.Values{}), lost("secret/b"), "configstamp: lost-records: x"}
	found := reason.LostRecord.Among(warnings)
	if len(found) != 2 || found[0].Source != "secret/a" || found[1].Source != "secret/b" || len(reason.Panicked.Among(warnings)) > 0 {
		t.Errorf("%+v", found)
	}
}

// Whatever the text, what is read is the text, or nothing is read.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"configstamp: in-step: x", `configstamp: missing-key: secret/db key "a" is away`, "configstamp: blocked: a, b: c", "configstamp: : ", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := reason.Parse(text)
		switch {
		case !ok && !cmp.Equal(m, reason.Message{}):
			t.Errorf("%q has not the form, and gives %+v", text, m)
		case ok && text != "configstamp: "+m.Code+": "+m.Sentence:
			t.Errorf("%q gives %+v", text, m)
		case ok && !strings.HasPrefix(m.Sentence, m.Source):
			t.Errorf("%q gives the source %q", text, m.Source)
		}
	})
}
