package checksum_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configstamp/configstamp/checksum"
)

// Of a record, nothing is needed but for which keys it was made.
func TestSuppose_ARecordIsOfTheSameKeys(t *testing.T) {
	installation, throwaway := checksum.NewRing(key(1)), checksum.NewRing(key(2))
	policy := checksum.DefaultPolicy()
	one := selected(t, policy, checksum.Reference{Source: message, Use: checksum.Startup, Keys: []string{"greeting"}})
	whole := selected(t, policy, envFrom(message))
	was := text("greeting", "hi", "color", "blue")
	for name, c := range map[string]struct {
		made, now     checksum.Selection
		after         *checksum.Content
		before, comes checksum.Verdict
	}{
		"another key changes":               {one, one, text("greeting", "hi", "color", "red"), checksum.True, checksum.True},
		"its key changes":                   {one, one, text("greeting", "ho", "color", "blue"), checksum.True, checksum.Untrue},
		"any key changes":                   {whole, whole, text("greeting", "hi", "color", "red"), checksum.True, checksum.Untrue},
		"made for all, one is used now":     {whole, one, text("greeting", "hi", "color", "red"), checksum.Reselected, checksum.Untrue},
		"made for what cannot be found out": {one, whole, text("greeting", "ho", "color", "red"), checksum.Unverifiable, checksum.Unverifiable},
	} {
		record := throwaway.Suppose(namespace, c.now, installation.Digest(namespace, c.made, text("greeting", "whatever")), was)
		if before := throwaway.Assess(namespace, c.now, record, true, was); before != c.before {
			t.Errorf("%s: before that it is %s, want %s", name, before, c.before)
		}
		if comes := throwaway.Assess(namespace, c.now, record, true, c.after); comes != c.comes {
			t.Errorf("%s: after that it is %s, want %s", name, comes, c.comes)
		}
	}
	if got := throwaway.Suppose(namespace, one, checksum.Absent, was); got != checksum.Absent {
		t.Errorf("a source that was not there is on record as %s, want %s", got, checksum.Absent)
	}
}

func TestSuppose_WhatASourceLeavesOutDoesNotDiffer(t *testing.T) {
	content := func(value, annotation, says string) *checksum.Content {
		cm := corev1.ConfigMap{Data: map[string]string{"build-date": value}}
		cm.Annotations = map[string]string{"configstamp.dev/" + annotation: says}
		return checksum.ContentOfConfigMap(&cm)
	}
	whole := selected(t, checksum.DefaultPolicy(), envFrom(message))
	for name, c := range map[string]struct {
		was, is *checksum.Content
		want    bool
	}{
		"nothing is said":       {text("build-date", "1"), text("build-date", "2"), true},
		"the key is ignored":    {content("1", "ignore-keys", "build-*"), content("2", "ignore-keys", "build-*"), false},
		"the source is ignored": {content("1", "ignore", "true"), content("2", "ignore", "true"), false},
		"a setting comes":       {text("build-date", "1"), content("1", "ignore-keys", "build-*"), false},
		"it is deleted":         {text("build-date", "1"), nil, true},
		"it is made":            {nil, text("build-date", "1"), true},
		"what is ignored goes":  {content("1", "ignore", "true"), nil, false},
		"what is ignored comes": {nil, content("1", "ignore", "true"), false},
		"there is none":         {nil, nil, false},
	} {
		if got := whole.Differs(c.was, c.is); got != c.want {
			t.Errorf("%s: differs %t, want %t", name, got, c.want)
		}
	}
}
