package checksum_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configstamp/configstamp/checksum"
)

func TestSelections(t *testing.T) {
	everything := checksum.Policy{Uses: []checksum.Use{checksum.Startup, checksum.Live, checksum.Node}}
	startup := checksum.Policy{Uses: []checksum.Use{checksum.Startup}}
	node := func(s checksum.Source) checksum.Reference {
		return used(checksum.Node, optional(checksum.Reference{Source: s, All: true}))
	}
	for about, c := range map[string]struct {
		policy     checksum.Policy
		references []checksum.Reference
		want       []string
	}{
		"nothing is selected by nothing": {policy: checksum.DefaultPolicy()},
		"references to two sources make two selections, sorted": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{envFrom(password), envFrom(message), envFrom(checksum.Source{Kind: checksum.ConfigMap, Name: "a"})},
			want:       []string{"configmap/a all, required", "configmap/web-message all, required", "secret/db-password all, required"},
		},
		"a ConfigMap and a Secret of one name are two sources": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{env(message, "a"), env(checksum.Source{Kind: checksum.Secret, Name: message.Name}, "b")},
			want:       []string{"configmap/web-message [a], required, needs a(data)", "secret/web-message [b], required, needs b(data)"},
		},
		"several references to one source make one sorted list of its keys": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{env(message, "c"), env(message, "a"), mounted(message, "b", "a")},
			want:       []string{"configmap/web-message [a b c], required, needs a(data) a b c(data); else [a c]"},
		},
		"a key that any reference requires is required": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{optional(env(message, "a")), env(message, "a"), optional(env(message, "b"))},
			want:       []string{"configmap/web-message [a b], required, needs a(data)"},
		},
		"optional references alone need nothing": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{optional(env(message, "a")), optional(mounted(message, "b"))},
			want:       []string{"configmap/web-message [a b]; else [a]"},
		},
		"all swallows a list, but not what it needs": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{env(message, "a"), optional(envFrom(message))},
			want:       []string{"configmap/web-message all, required, needs a(data)"},
		},
		"one source both startup and live counts together by default": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{env(message, "a"), mounted(message, "b")},
			want:       []string{"configmap/web-message [a b], required, needs a(data) b; else [a]"},
		},
		"restart-on startup counts what is startup of it": {
			policy:     startup,
			references: []checksum.Reference{env(message, "a"), mounted(message, "b")},
			want:       []string{"configmap/web-message [a], required, needs a(data) b; else [a b] [a b]"},
		},
		"restart-on startup leaves out what is only live, but nothing rolls without it": {
			policy:     startup,
			references: []checksum.Reference{mounted(message), env(password, "a")},
			want:       []string{"configmap/web-message holds, required", "secret/db-password [a], required, needs a(data)"},
		},
		"node uses do not count by default": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{node(password)},
		},
		"node uses count with everything, and need nothing": {
			policy:     everything,
			references: []checksum.Reference{node(password)},
			want:       []string{"secret/db-password all"},
		},
		"a Secret that a container and the node read is another selection under everything": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{node(password), env(password, "a")},
			want:       []string{"secret/db-password [a], required, needs a(data); else all"},
		},
		"an unused volume counts under no policy": {
			policy:     everything,
			references: []checksum.Reference{used(checksum.Unused, mounted(message))},
		},
		"an unused volume adds nothing to what is used": {
			policy:     everything,
			references: []checksum.Reference{used(checksum.Unused, mounted(message)), optional(env(message, "a"))},
			want:       []string{"configmap/web-message [a]"},
		},
		"an ignored source does not count, whatever references it, but nothing rolls without it": {
			policy:     checksum.DefaultPolicy(message),
			references: []checksum.Reference{envFrom(message), env(message, "a"), env(password, "a")},
			want:       []string{"configmap/web-message holds, required, needs a(data)", "secret/db-password [a], required, needs a(data)"},
		},
		"an ignored ConfigMap does not ignore the Secret of its name": {
			policy:     checksum.DefaultPolicy(message),
			references: []checksum.Reference{envFrom(checksum.Source{Kind: checksum.Secret, Name: message.Name})},
			want:       []string{"secret/web-message all, required"},
		},
		"a name that no object can have selects nothing": {
			policy: checksum.DefaultPolicy(),
			references: []checksum.Reference{
				envFrom(checksum.Source{Kind: checksum.ConfigMap, Name: "Web_Message"}),
				envFrom(checksum.Source{Kind: checksum.ConfigMap, Name: strings.Repeat("a", 254)}),
				envFrom(checksum.Source{Kind: checksum.Secret, Name: "a/b"}),
			},
		},
		"an item that names no key of the mount selects none, and is needed": {
			policy:     checksum.DefaultPolicy(),
			references: []checksum.Reference{{Source: message, Use: checksum.Startup, RequiredKeys: []string{"x"}}},
			want:       []string{"configmap/web-message [], required, needs x"},
		},
	} {
		t.Run(about, func(t *testing.T) {
			for range 3 { // no order of a Go map shows
				var got []string
				for _, s := range checksum.Selections(c.references, c.policy) {
					got = append(got, line(s))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("selections differ (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// line writes a selection: source and keys, what it needs, alternatives.
func line(s checksum.Selection) string {
	keys := func(s checksum.Selection) string {
		switch {
		case s.HoldOnly:
			return "holds"
		case s.All:
			return "all"
		}
		return fmt.Sprint(s.Keys)
	}
	text := s.Source.String() + " " + keys(s)
	if s.Required {
		text += ", required"
	}
	for i, required := range s.RequiredKeys {
		if i == 0 {
			text += ", needs"
		}
		text += " " + required.Name
		if required.DataOnly {
			text += "(data)"
		}
	}
	for i, other := range s.Alternatives {
		if i == 0 {
			text += "; else"
		}
		text += " " + keys(other)
	}
	return text
}

func TestMissing(t *testing.T) {
	for about, c := range map[string]struct {
		references []checksum.Reference
		content    *checksum.Content
		key        string
		missing    bool
	}{
		"a required source that does not exist":                           {references: []checksum.Reference{envFrom(message)}, missing: true},
		"an optional source that does not exist":                          {references: []checksum.Reference{optional(envFrom(message))}},
		"a required key of a source that does not exist is no single key": {references: []checksum.Reference{env(message, "a")}, missing: true},
		"a source that exists and is empty":                               {references: []checksum.Reference{envFrom(message)}, content: text()},
		"a required key that is there":                                    {references: []checksum.Reference{env(message, "a")}, content: text("a", "1")},
		"a required key that is there and empty":                          {references: []checksum.Reference{env(message, "a")}, content: text("a", "")},
		"a required key that is not there":                                {references: []checksum.Reference{env(message, "a")}, content: text("b", "1"), key: "a", missing: true},
		"an optional key that is not there":                               {references: []checksum.Reference{optional(env(message, "a"))}, content: text("b", "1")},
		"an item that is not there":                                       {references: []checksum.Reference{mounted(message, "a", "b")}, content: text("a", "1"), key: "b", missing: true},
		"an item of an optional volume that is not there":                 {references: []checksum.Reference{optional(mounted(message, "a", "b"))}, content: text("a", "1")},
		"an env key found only in binaryData":                             {references: []checksum.Reference{env(message, "a")}, content: blob("a", "1"), key: "a", missing: true},
		"an item found only in binaryData":                                {references: []checksum.Reference{mounted(message, "a")}, content: blob("a", "1")},
		"a key for a file and for env, found only in binaryData":          {references: []checksum.Reference{mounted(message, "a"), env(message, "a")}, content: blob("a", "1"), key: "a", missing: true},
		"an optional env key found only in binaryData":                    {references: []checksum.Reference{optional(env(message, "a")), mounted(message, "a")}, content: blob("a", "1")},
		"one reference's need, while another is optional":                 {references: []checksum.Reference{optional(envFrom(message)), env(message, "a")}, content: text("b", "1"), key: "a", missing: true},
		"the first of several keys by name":                               {references: []checksum.Reference{env(message, "c"), env(message, "b")}, content: text("a", "1"), key: "b", missing: true},
		"a subPath's key that is not there (the kubelet makes a directory)": {
			references: []checksum.Reference{{Source: message, Use: checksum.Startup, Keys: []string{"a"}}}, content: text("b", "1"),
		},
	} {
		t.Run(about, func(t *testing.T) {
			key, missing := selected(t, checksum.DefaultPolicy(), c.references...).Missing(c.content)
			if key != c.key || missing != c.missing {
				t.Errorf("Missing() = %q, %v; want %q, %v", key, missing, c.key, c.missing)
			}
		})
	}
}

func TestSelectionsLeaveTheReferencesAlone(t *testing.T) {
	references := []checksum.Reference{mounted(message, "c", "a"), env(message, "b")}
	checksum.Selections(references, checksum.DefaultPolicy())
	if !slices.Equal(references[0].Keys, []string{"c", "a"}) || !slices.Equal(references[0].RequiredKeys, []string{"c", "a"}) {
		t.Errorf("the keys of a reference were sorted in place: %v, %v", references[0].Keys, references[0].RequiredKeys)
	}
}
