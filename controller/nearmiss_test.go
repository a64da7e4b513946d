package controller

import (
	"slices"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/workload"
)

// looksForMisses is what is told by the next looks for near misses.
func (h *house) looksForMisses(t *testing.T, m *misses, looks int) (said []string) {
	t.Helper()
	for range looks {
		h.tellNewMisses(t.Context(), m)
	}
	_, said = h.happened()
	slices.Sort(said)
	return said
}

func found(at checksum.Origin, key string) []checksum.Finding {
	return checksum.NearMisses(at, nil, map[string]string{key: "x"})
}

func TestMisses_AreToldWhereTheyStand(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	c.optedOut = true
	misplaced, owned := c.deploy("misplaced", "c"), c.deploy("owned", "c")
	labels(c.objects[misplaced])["configstamp.dev/inject"] = "true"
	labels(c.objects[owned])["configstamp.dev/inject"] = "true"
	c.objects[owned]["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "serving.knative.dev/v1", "kind": "Revision", "name": "r", "controller": true}}
	unreadable := c.deploy("unreadable", "c")
	c.annotate(unreadable, "mode", "dry-run")
	c.said = slices.Concat(found(checksum.OfNamespace, "configstamp.dev/pasue"), checksum.Unreadable(checksum.OfNamespace, map[string]string{"configstamp.dev/window": "Mon 22:00-23:00"}), found(checksum.OfNamespace, "configstamp.dev/resume"))
	c.findings = map[checksum.Source][]checksum.Finding{configMap("c"): found(checksum.OfSource, "configstamp.dev/pause")}
	h := newHouse(t, c)
	h.options.Kinds = workload.Builtin().With(workload.Known()...)
	h.see(t, owned)
	m := &misses{told: remarks{}}
	if said := h.looksForMisses(t, m, 1); len(said) > 0 {
		t.Errorf("said at once: %q", said)
	}
	want := []string{
		`Warning PolicyUnreadable configstamp.dev/mode: "dry-run": want restart or observe; nothing restarts until it is fixed`,
		`Warning PolicyUnreadable configstamp.dev/window on the Namespace: "Mon 22:00-23:00": a time zone is missing after "22:00-23:00": want one such as Europe/Berlin or UTC; nothing restarts until it is fixed`,
		`Warning SettingHasNoEffect the annotation configstamp.dev/pasue is not a setting of a Namespace; it has no effect; did you mean the annotation configstamp.dev/pause? the annotation configstamp.dev/resume has no effect on a Namespace; write it on a ConfigMap or Secret`,
		`Warning SettingHasNoEffect the annotation configstamp.dev/pause has no effect on a ConfigMap or Secret; write it on a workload or its Namespace`,
		`Warning SettingHasNoEffect the label configstamp.dev/inject: "true" opts neither in nor out: want enabled or disabled; did you mean enabled?`,
	}
	if said := h.looksForMisses(t, m, 3); !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}

	// What is another text is told of again, and so is what comes back.
	c.said = found(checksum.OfNamespace, "configstamp.dev/only-if")
	if said := h.looksForMisses(t, m, 3); len(said) != 1 {
		t.Errorf("after an edit said %q", said)
	}
	again := c.said
	c.said = nil
	said := h.looksForMisses(t, m, 2)
	c.said = again
	if said = append(said, h.looksForMisses(t, m, 3)...); len(said) != 1 {
		t.Errorf("what came back: said %q", said)
	}
	if delete(c.findings, configMap("c")); len(h.looksForMisses(t, m, 2)) > 0 || len(m.told) != 3 {
		t.Errorf("remembered: %v", m.told)
	}
}

// An admission tells who writes it.
func TestMisses_OfAWorkloadThatAnAdmissionSeesAreNotToldAgain(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	d := c.deploy("d", "c")
	labels(c.objects[d])["configstamp.dev/inject"] = "disable"
	c.annotate(d, "only", "configmap/typo")
	h := newHouse(t, c)
	m := &misses{told: remarks{}}
	if said := h.looksForMisses(t, m, 3); len(said) > 0 {
		t.Errorf("said %q", said)
	}
	c.optedOut = true
	if said := h.looksForMisses(t, m, 3); len(said) != 1 {
		t.Errorf("in a namespace that is not opted in: said %q", said)
	}
	c.settings = map[string]string{"configstamp.dev/installation": "other"}
	h.options.Installation = "configstamp"
	if h.looksForMisses(t, m, 3); len(m.stood) > 0 {
		t.Errorf("in a namespace that is left to another installation: %v", m.stood)
	}
}

func TestMisses_NamesOnANamespaceThatNothingReferences(t *testing.T) {
	c := newCluster(t)
	c.settings = map[string]string{"configstamp.dev/only": "configmap/web,configmap/typo,secret/*"}
	h := newHouse(t, c)
	m := &misses{told: remarks{}}
	if said := h.looksForMisses(t, m, 3); len(said) > 0 {
		t.Errorf("in an empty namespace: said %q", said)
	}
	h.see(t, c.deploy("d", "web"))
	if said, want := h.looksForMisses(t, m, 3), []string{"Warning SettingHasNoEffect configstamp.dev/only names configmap/typo, which nothing here references; correct the name, or remove it"}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	h.see(t, c.deploy("other", "typo"))
	if h.looksForMisses(t, m, 1); len(m.stood) > 0 {
		t.Errorf("when something references it: %v", m.stood)
	}
}

// What stands on the Namespace or on a source is told of there, and on a workload only
// while it holds that.
func TestMisses_WhatCannotBeReadIsToldOnAWorkloadOnlyWhileItHoldsIt(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	d := c.deploy("d", "c")
	h := adopted(t, c)
	c.settings = map[string]string{"configstamp.dev/mode": "?"}
	h.index.Reconsider("shop")
	h.mustSync(t, d)
	if _, said := h.happened(); len(said) > 0 {
		t.Errorf("said %q while nothing is due", said)
	}
	c.write("c", map[string]string{"k": "2"})
	h.rest()
	h.mustSync(t, d)
	if _, said := h.happened(); len(said) != 1 {
		t.Errorf("said %q while it is held", said)
	}
}
