package checksum_test

import (
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
)

func TestAssess(t *testing.T) {
	old, current, lost := key(1), key(2), key(3)
	ring := checksum.NewRing(current, old)
	startup := checksum.Policy{Uses: []checksum.Use{checksum.Startup}}
	everything := checksum.Policy{Uses: []checksum.Use{checksum.Startup, checksum.Live, checksum.Node}}

	whole := []checksum.Reference{envFrom(message)}
	perhaps := []checksum.Reference{optional(envFrom(message))}
	both := []checksum.Reference{env(message, "a"), mounted(message, "b")}
	node := []checksum.Reference{env(password, "a"), used(checksum.Node, optional(checksum.Reference{Source: password, All: true}))}

	// written is the value that references give under a policy and a key.
	written := func(k checksum.Key, policy checksum.Policy, references []checksum.Reference, content *checksum.Content) string {
		return checksum.NewRing(k).Digest(namespace, selected(t, policy, references...), content)
	}
	byDefault := checksum.DefaultPolicy()

	for about, c := range map[string]struct {
		references []checksum.Reference
		policy     *checksum.Policy
		record     string // "" for none
		content    *checksum.Content
		want       checksum.Verdict
	}{
		"nothing on record":                          {whole, nil, "", text("a", "1"), checksum.Unrecorded},
		"nothing on record of an absent optional":    {perhaps, nil, "", nil, checksum.Unrecorded},
		"nothing on record of a missing source":      {whole, nil, "", nil, checksum.Missing},
		"the same content":                           {whole, nil, written(current, byDefault, whole, text("a", "1")), text("a", "1"), checksum.True},
		"the same content under an old key":          {whole, nil, written(old, byDefault, whole, text("a", "1")), text("a", "1"), checksum.True},
		"another value":                              {whole, nil, written(current, byDefault, whole, text("a", "1")), text("a", "2"), checksum.Untrue},
		"another value under an old key":             {whole, nil, written(old, byDefault, whole, text("a", "1")), text("a", "2"), checksum.Untrue},
		"one key more":                               {whole, nil, written(current, byDefault, whole, text("a", "1")), text("a", "1", "b", ""), checksum.Untrue},
		"one key less":                               {whole, nil, written(current, byDefault, whole, text("a", "1", "b", "")), text("a", "1"), checksum.Untrue},
		"data moved to binaryData, the same bytes":   {whole, nil, written(current, byDefault, whole, text("a", "1")), blob("a", "1"), checksum.True},
		"an unknown key id":                          {whole, nil, written(lost, byDefault, whole, text("a", "1")), text("a", "1"), checksum.Unverifiable},
		"an unknown key id, of other content":        {whole, nil, written(lost, byDefault, whole, text("a", "1")), text("a", "2"), checksum.Unverifiable},
		"a missing source keeps its record":          {whole, nil, written(current, byDefault, whole, text("a", "1")), nil, checksum.Missing},
		"a missing source with an unreadable record": {whole, nil, "junk", nil, checksum.Missing},
		"a missing key keeps its record":             {both, nil, written(current, byDefault, both, text("a", "1", "b", "2")), text("a", "1"), checksum.Missing},
		"an env key gone to binaryData":              {both, nil, written(current, byDefault, both, text("a", "1", "b", "2")), blob("a", "1", "b", "2"), checksum.Missing},

		"an optional source still absent":               {perhaps, nil, checksum.Absent, nil, checksum.True},
		"an optional source that appears":               {perhaps, nil, checksum.Absent, text("a", "1"), checksum.Untrue},
		"an optional source that appears empty":         {perhaps, nil, checksum.Absent, text(), checksum.Untrue},
		"an optional source that disappears":            {perhaps, nil, written(current, byDefault, perhaps, text("a", "1")), nil, checksum.Untrue},
		"an optional source that disappears, key lost":  {perhaps, nil, written(lost, byDefault, perhaps, text("a", "1")), nil, checksum.Untrue},
		"an absent optional with an unreadable record":  {perhaps, nil, "junk", nil, checksum.Unverifiable},
		"absent on record of what is required since":    {whole, nil, checksum.Absent, text("a", "1"), checksum.Untrue},
		"an optional key that appears":                  {[]checksum.Reference{optional(env(message, "a"))}, nil, written(current, byDefault, []checksum.Reference{optional(env(message, "a"))}, text("b", "1")), text("a", "", "b", "1"), checksum.Untrue},
		"a key that is not selected changes":            {both, nil, written(current, byDefault, both, text("a", "1", "b", "2", "c", "3")), text("a", "1", "b", "2", "c", "4"), checksum.True},
		"written for all, true, now a list":             {both, nil, written(current, byDefault, whole, text("a", "1", "b", "2")), text("a", "1", "b", "2"), checksum.Reselected},
		"written for all under an old key, now a list":  {both, nil, written(old, byDefault, whole, text("a", "1", "b", "2")), text("a", "1", "b", "2"), checksum.Reselected},
		"written for all, untrue, now a list":           {both, nil, written(current, byDefault, whole, text("a", "1", "b", "2", "c", "3")), text("a", "1", "b", "2", "c", "4"), checksum.Untrue},
		"restart-on all to startup, true":               {both, &startup, written(current, byDefault, both, text("a", "1", "b", "2")), text("a", "1", "b", "2"), checksum.Reselected},
		"restart-on all to startup, a restart pends":    {both, &startup, written(current, byDefault, both, text("a", "1", "b", "2")), text("a", "1", "b", "3"), checksum.Untrue},
		"restart-on startup to all, true":               {both, nil, written(current, startup, both, text("a", "1", "b", "2")), text("a", "1", "b", "9"), checksum.Reselected},
		"restart-on startup to all, a restart pends":    {both, nil, written(current, startup, both, text("a", "1", "b", "2")), text("a", "9", "b", "2"), checksum.Untrue},
		"restart-on everything to all, true":            {node, nil, written(current, everything, node, text("a", "1")), text("a", "1"), checksum.Reselected},
		"restart-on everything to all, a restart pends": {node, nil, written(current, everything, node, text("a", "1")), text("a", "1", "b", "2"), checksum.Untrue},
		"restart-on all to everything, true":            {node, &everything, written(current, byDefault, node, text("a", "1")), text("a", "1", "b", "2"), checksum.Reselected},
		"a list that no policy gives":                   {both, nil, written(current, byDefault, []checksum.Reference{env(message, "z")}, text("a", "1", "b", "2")), text("a", "1", "b", "2"), checksum.Unverifiable},
		"a list, now all":                               {whole, nil, written(current, byDefault, []checksum.Reference{env(message, "a")}, text("a", "1")), text("a", "1"), checksum.Unverifiable},
	} {
		t.Run(about, func(t *testing.T) {
			policy := byDefault
			if c.policy != nil {
				policy = *c.policy
			}
			got := ring.Assess(namespace, selected(t, policy, c.references...), c.record, c.record != "", c.content)
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAValueIsReadExactlyAsItIsWritten(t *testing.T) {
	ring := checksum.NewRing(key(1))
	selection := selected(t, checksum.DefaultPolicy(), envFrom(message))
	content := text("a", "1")
	value := ring.Digest(namespace, selection, content)
	for about, hostile := range map[string]string{
		"empty, yet on record":      "",
		"no value":                  "junk",
		"upper case":                strings.ToUpper(value),
		"one digit less":            value[:len(value)-1],
		"one digit more":            value + "0",
		"a line end":                value + "\n",
		"a blank before":            " " + value,
		"two lines":                 value + "\n" + value,
		"another version":           "v2" + strings.TrimPrefix(value, "v1"),
		"no version":                strings.TrimPrefix(value, "v1:"),
		"no selection":              strings.Replace(value, ":all:", "::", 1),
		"another selection":         strings.Replace(value, ":all:", ":ALL:", 1),
		"absent and more":           checksum.Absent + ":all",
		"absent, upper case":        "V1:ABSENT",
		"a digit that is no hex":    value[:len(value)-1] + "g",
		"a digit of another script": value[:len(value)-1] + "\u0661",
		"NULs":                      "v1:\x00",
		"very long":                 strings.Repeat("v1:", 1<<18),
	} {
		if got := ring.Assess(namespace, selection, hostile, true, content); got != checksum.Unverifiable {
			t.Errorf("%s: assessed as %v", about, got)
		}
		if id, unknown := ring.UnknownKey(hostile); unknown || id != "" {
			t.Errorf("%s: has a key to look for, %q", about, id)
		}
	}
}
