package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/configstamp/configstamp/checksum"
	"github.com/configstamp/configstamp/controller/internal/waiting"
	"github.com/configstamp/configstamp/internal/reason"
)

// gone is what is said of a Deployment whose ConfigMap was deleted.
const gone = "configmap/c does not exist any more: running pods keep running, but no new pod of this Deployment can start, and nothing rolls out. " +
	"If it comes back with the same content, nothing restarts; other content rolls out"

func TestGone_IsToldOnceItHasSettled(t *testing.T) {
	for sentence, test := range map[string]struct {
		back  func(c *cluster) // after a second
		says  []string
		rolls bool // when it comes back later, with what was there before or now
		later map[string]string
	}{
		"deleted":                              {says: []string{"Warning SourceMissing " + gone}, later: map[string]string{"k": "old"}},
		"deleted, and made again with another": {says: []string{"Warning SourceMissing " + gone}, later: map[string]string{"k": "new"}, rolls: true},
		"replaced by force, with the same":     {back: func(c *cluster) { c.write("c", map[string]string{"k": "old"}) }, later: map[string]string{"k": "old"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCluster(t)
			c.write("c", map[string]string{"k": "old"})
			d := c.deploy("d", "c")
			h := adopted(t, c)
			h.clock.Step(time.Hour)
			delete(c.contents, configMap("c"))
			h.Changed("shop", configMap("c"))
			if wait := h.mustSync(t, d); wait != settle {
				t.Errorf("looks again after %s, want %s", wait, settle)
			}
			h.clock.Step(time.Second)
			if test.back != nil {
				test.back(c)
				h.Changed("shop", configMap("c"))
			}
			h.clock.Step(settle)
			for range 3 {
				h.mustSync(t, d)
			}
			calls, said := h.happened()
			if !slices.Equal(said, test.says) || len(calls) > 0 {
				t.Errorf("said %q, want %q; asked %v", said, test.says, calls)
			}
			if held := h.waits.Tally()["missing"].Count; held != len(test.says) {
				t.Errorf("%d workloads lack something, by the metrics", held)
			}
			c.write("c", test.later)
			h.Changed("shop", configMap("c"))
			h.rest()
			h.mustSync(t, d)
			if calls, said = h.happened(); slices.Contains(calls, "configstamp d") != test.rolls || h.waits.Tally()["missing"].Count > 0 {
				t.Errorf("after it came back: asked %v, said %q", calls, said)
			}
			delete(c.contents, configMap("c")) // it is news again
			h.Changed("shop", configMap("c"))
			h.rest()
			h.mustSync(t, d)
			if _, said = h.happened(); len(said) != 1 || !strings.HasPrefix(said[0], "Warning SourceMissing") {
				t.Errorf("of the second time it is said: %q", said)
			}
		})
	}
}

func TestGone_OfAKey_OfSeveral_AndOfWhatNeverWas(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old", "other": "1"})
	c.write("c2", nil)
	d := c.deploy("d", "c2")
	container := c.objects[d]["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["env"] = []any{map[string]any{"name": "K", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "c", "key": "k"}}}}
	h := adopted(t, c)
	never := c.deploy("never", "nowhere")
	h.see(t, never)
	c.write("c", map[string]string{"other": "1"})
	delete(c.contents, configMap("c2"))
	h.rest()
	h.mustSync(t, d)
	h.mustSync(t, never)
	_, said := h.happened()
	if len(said) != 1 || !strings.HasPrefix(said[0], "Warning SourceMissing configmap/c has no key k any more and configmap/c2 does not exist any more: running pods keep running") {
		t.Errorf("said %q", said)
	}
}

// People know of a halt until it goes on, or the source changes: a resume that cannot be read
// withdraws the workloads that wait, and its removal brings them back.
func TestHalt_IsNotToldAgainWhenABadResumeIsCleared(t *testing.T) {
	w, at := fleet(t, 5)
	bad := w.newContent()
	w.bad[bad] = true
	w.edit(at, bad)
	w.pass(10 * time.Minute)
	w.wantHeard("ChangeHalted", 1)
	for range 2 {
		for _, policy := range []*checksum.SourcePolicy{checksum.SourcePolicyOf(map[string]string{"configstamp.dev/resume": "tomorrow"}), nil} {
			was, is := w.contents[at], &checksum.Content{Entries: bad.Entries, Policy: policy}
			w.bad[is], w.contents[at] = true, is
			w.controller.Edited(at.Namespace, at.Source, was)
			w.pass(10 * time.Minute)
		}
	}
	w.wantRolls(1, 0, 0, 0, 0)
	w.wantHeard("ChangeHalted", 1)
	w.wantHeard("ChangeResumed", 0)
	if halts := testutil.ToFloat64(w.controller.metrics.halts); halts != 1 {
		t.Errorf("%v halts are counted, want 1", halts)
	}
	worse := w.newContent()
	w.bad[worse] = true
	w.edit(at, worse)
	w.pass(10 * time.Minute)
	w.wantHeard("ChangeHalted", 2) // by the same workload, in the same words
	var halt string
	for _, event := range w.said {
		if event.reason == "ChangeHalted" {
			halt = event.text
		}
	}
	w.resume(at)
	w.pass(time.Second)
	if !w.controller.told.First(waiting.OfSource(at), reason.ChangeHalted, halt) {
		t.Error("the same halt again would not be told of")
	}
	w.pass(10 * time.Minute)
	w.wantHeard("ChangeHalted", 3) // the next one has failed
}

// Pods that are pinned start all the same.
func TestGone_PinnedPodsGoOn(t *testing.T) {
	c := newCluster(t)
	c.write("c", map[string]string{"k": "old"})
	d := c.deploy("d", "c")
	template := c.objects[d]["spec"].(map[string]any)["template"].(map[string]any)
	template["metadata"] = map[string]any{"annotations": map[string]any{checksum.PinsAnnotation: `{"configmap/c":"c-0123456789abcdef0123 startup"}`}}
	h := adopted(t, c)
	h.options.SnapshotOf = func(string, string, checksum.Source) *checksum.Content { return nil }
	h.clock.Step(time.Hour)
	delete(c.contents, configMap("c"))
	h.Changed("shop", configMap("c"))
	h.clock.Step(settle)
	h.mustSync(t, d)
	if _, said := h.happened(); len(said) != 1 || !strings.Contains(said[0], "SourceMissing configmap/c does not exist any more: pods read what is pinned, new ones too") {
		t.Errorf("said %q", said)
	}
}
