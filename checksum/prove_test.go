package checksum_test

import (
	"reflect"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

// TestToProve: by our own account what changes as far as memory tells; else everything.
func TestToProve(t *testing.T) {
	ring := checksum.NewRing(key('k'))
	a, b, c := checksum.Source{Kind: checksum.ConfigMap, Name: "a"}, checksum.Source{Kind: checksum.ConfigMap, Name: "b"}, checksum.Source{Kind: checksum.Secret, Name: "c"}
	all := []checksum.Source{a, b, c}
	was, now := text("k", "1"), text("k", "2")
	unreadable := text("k", "1")
	unreadable.Policy = &checksum.SourcePolicy{Faults: []checksum.Fault{{}}}
	selection := func(s checksum.Source) checksum.Selection {
		return checksum.Selection{Source: s, All: true, Required: true}
	}
	stamps := map[string]string{}
	for _, s := range all {
		stamps[checksum.StampKey(s)] = ring.Digest("shop", selection(s), was)
	}
	own := admissionCase{Namespace: "shop", Asker: checksum.Roller, Own: true}
	with := func(edit func(*admissionCase)) admissionCase { x := own; edit(&x); return x }
	same, edited := checksum.Contents{a: was, b: was, c: was}, checksum.Contents{a: now, b: was, c: was}
	for name, test := range map[string]struct {
		asked        admissionCase
		remembered   checksum.Contents
		must, beside []checksum.Source
	}{
		"one has changed":                       {own, edited, []checksum.Source{a}, []checksum.Source{b, c}},
		"two have changed":                      {own, checksum.Contents{a: now, b: was, c: now}, []checksum.Source{a, c}, []checksum.Source{b}},
		"nothing has, so memory is in doubt":    {own, same, all, nil},
		"memory cannot tell":                    {own, nil, all, nil},
		"one has changed, one is missing":       {own, checksum.Contents{a: now, b: was}, []checksum.Source{a, c}, []checksum.Source{b}},
		"one is missing, nothing has changed":   {own, checksum.Contents{a: was, b: was}, all, nil},
		"one has a setting that cannot be read": {own, checksum.Contents{a: now, b: unreadable, c: was}, []checksum.Source{a, b}, []checksum.Source{c}},
		"one has no record": {with(func(x *admissionCase) {
			x.Held.Stamps = map[string]string{checksum.StampKey(a): stamps[checksum.StampKey(a)], checksum.StampKey(b): stamps[checksum.StampKey(b)]}
		}), edited, []checksum.Source{a, c}, []checksum.Source{b}},
		"a creation":            {with(func(x *admissionCase) { x.Create, x.Asker = true, checksum.Anyone }), edited, all, nil},
		"a changed template":    {with(func(x *admissionCase) { x.TemplateChanged = true }), edited, all, nil},
		"a recording":           {with(func(x *admissionCase) { x.Asker = checksum.Recorder }), edited, all, nil},
		"somebody else's order": {with(func(x *admissionCase) { x.Own = false }), edited, all, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range all {
				test.asked.Selections = append(test.asked.Selections, selection(s))
			}
			if test.asked.Held.Stamps == nil {
				test.asked.Held.Stamps = stamps
			}
			must, beside := ring.ToProve(test.asked.request(), test.asked.facts(), test.remembered)
			if !reflect.DeepEqual(must, test.must) || !reflect.DeepEqual(beside, test.beside) {
				t.Errorf("must %v, beside %v; want %v, %v", must, beside, test.must, test.beside)
			}
		})
	}
}

func TestIsOwn(t *testing.T) {
	for user, want := range map[string]bool{
		"system:serviceaccount:configstamp:configstamp": true,
		"system:serviceaccount:other:configstamp":       false,
		"system:serviceaccount:configstamp-2:x":         false,
		"kubernetes-admin":                              false,
		"":                                              false,
	} {
		if got := checksum.IsOwn(user, "configstamp"); got != want {
			t.Errorf("%q is our own: %t, want %t", user, got, want)
		}
		if checksum.IsOwn(user, "") {
			t.Errorf("%q is our own in no namespace", user)
		}
	}
}
