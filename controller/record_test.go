package controller

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/internal/reason"
	"github.com/configstamp/configstamp/internal/workload"
)

// anotherKey has a key that the cluster's ring does not hold write the record of a workload's
// ConfigMap, as another installation does.
func (h *house) anotherKey(t *testing.T, ref workload.Ref, of string) {
	t.Helper()
	key, err := checksum.NewKey(bytes.Repeat([]byte{9}, checksum.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	source := configMap(of)
	selection := checksum.Selection{Source: source, All: true, Required: true}
	value := checksum.NewRing(key).Digest("shop", selection, h.cluster.contents[source])
	h.cluster.store(ref, checksum.Records{Baseline: map[checksum.Source]string{source: value}})
	h.see(t, ref)
}

// Two installations that serve one namespace would otherwise write in turns for ever. The Warning
// says why.
func TestRecord_AnUnknownKeyIsReplacedOnceAnHour(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	ref := c.deploy("web", "c")
	h := adopted(t, c)
	writes, said := 0, []string(nil)
	for range 5 * 60 {
		h.anotherKey(t, ref, "c")
		h.mustSync(t, ref)
		calls, events := h.happened()
		said = append(said, events...)
		if slices.Contains(calls, checksum.RecordingManager+" web") {
			writes++
		}
		h.clock.Step(time.Minute)
	}
	if writes != 5 {
		t.Errorf("%d writes in five hours, want 5", writes)
	}
	if len(said) == 0 || !strings.Contains(said[0], reason.LostRecord.Event()) || !strings.Contains(said[0], "two installations of configstamp serve this namespace") {
		t.Errorf("said %q", said)
	}
}

// While the webhook is not called, nothing is recorded, and the hour does not begin.
func TestRecord_AnUnknownKeyIsReplacedSoonAfterTheWebhookIsBack(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "1"})
	ref := c.deploy("web", "c")
	h := adopted(t, c)
	h.anotherKey(t, ref, "c")
	c.away = true
	for range 3 {
		_, _ = h.sync(t.Context(), ref)
		h.clock.Step(time.Second)
	}
	c.away = false
	h.mustSync(t, ref)
	if _, said := h.happened(); len(said) != 1 || !strings.Contains(said[0], reason.LostRecord.Event()) {
		t.Errorf("said %q", said)
	}
}
