package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
)

func (h *house) tellsFindings(t *testing.T, told remarks) (said []string) {
	t.Helper()
	for range 2 {
		h.tellNewFindings(t.Context(), told)
	}
	_, said = h.happened()
	slices.Sort(said)
	return said
}

func TestFindings_AreToldOnceWhereTheyStand(t *testing.T) {
	unreadable := func(at checksum.Origin, key string) []checksum.Finding {
		return checksum.Unreadable(at, map[string]string{key: "?"})
	}
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	c.said = slices.Concat(unreadable(checksum.OfNamespace, "configstamp.dev/mode"), unreadable(checksum.OfNamespace, "configstamp.dev/order"), unreadable(checksum.OfNamespace, "configstamp.dev/pin"))
	c.findings = map[checksum.Source][]checksum.Finding{configMap("c"): {{Reason: reason.NotASnapshot}}}
	h, told := newHouse(t, c), remarks{}
	want := []string{
		`Warning PolicyUnreadable configstamp.dev/mode on the Namespace: "?": want restart or observe; nothing restarts until it is fixed. configstamp.dev/order on the Namespace: "?": want a whole number such as 10; nothing restarts until it is fixed`,
		`Warning SettingHasNoEffect configstamp.dev/pin on the Namespace: "?": want false or true; nothing is pinned until it is fixed, and nothing is held by it`,
		`Warning SnapshotLabelMisplaced it has the label of a snapshot, but its name or its annotation configstamp.dev/of does not fit; it is an ordinary ConfigMap, and the label should go`,
	}
	if said := h.tellsFindings(t, told); !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}

	// What is another text is told of again, and so is what comes back.
	c.said = unreadable(checksum.OfNamespace, "configstamp.dev/mode")
	if said := h.tellsFindings(t, told); len(said) != 1 {
		t.Errorf("after an edit said %q", said)
	}
	again := c.said
	c.said = nil
	said := h.tellsFindings(t, told)
	c.said = again
	if said = append(said, h.tellsFindings(t, told)...); len(said) != 1 {
		t.Errorf("what came back: said %q", said)
	}
	if delete(c.findings, configMap("c")); len(h.tellsFindings(t, told)) > 0 || len(told) != 1 {
		t.Errorf("remembered: %v", told)
	}
}

// What stands on the Namespace or on a source is told of there, and on a workload only
// while it holds that.
func TestFindings_WhatCannotBeReadIsToldOnAWorkloadOnlyWhileItHoldsIt(t *testing.T) {
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

// What nobody uses whom we serve is not told of: most immutable sources are others'.
func TestFindings_WhatIsMadeAnewIsToldWhereItConcernsSomebody(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	c.write("unused", map[string]string{"k": "1"})
	c.deploy("d", "c")
	h, told := adopted(t, c), remarks{}
	h.happened()
	c.findings = map[checksum.Source][]checksum.Finding{configMap("c"): {{Reason: reason.MadeAnew}}, configMap("unused"): {{Reason: reason.MadeAnew}}}
	if said := h.tellsFindings(t, told); len(said) != 1 || !strings.Contains(said[0], reason.MadeAnew.Event()) {
		t.Errorf("said %q, want it of the one that is used", said)
	}
	c.optedOut = true
	h.index.Reconsider("shop")
	if h.tellsFindings(t, told); len(told) > 0 {
		t.Errorf("remembered %v of a namespace that opted out", told)
	}
}
